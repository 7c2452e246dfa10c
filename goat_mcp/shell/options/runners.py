"""Programs whose arguments are programs. A wildcard rule covers one only where it spells out what is run: a rule
`python -m pytest *` does, `python *` does not, and for `env`, `sudo`, `bash` or `xargs` only an exact rule will do."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from goat_mcp.shell.running_programs import SHELLS, WRAPPERS

_BUILTINS = frozenset(
    {"eval", "source", ".", "trap", "alias", "unalias", "hash", "history", "enable", "set", "shopt", "mapfile", "fc"}
    | {"readarray", "bind", "complete", "compgen", "let", "read", "unset", "wait", "getopts", "declare", "typeset"}
    | {"local", "export", "readonly", "pushd", "popd", "dirs", "test", "suspend", "logout", "exit", "return", "break"}
    | {"continue", "shift", "umask", "ulimit", "caller", "disown", "fg", "bg", "compopt", "times"}
)
"""Of bash: they run text, change what later words mean, or evaluate subscripts in their arguments."""
_PROGRAMS = frozenset(
    {"awk", "gawk", "mawk", "nawk", "perl", "ruby", "php", "lua", "luajit", "tclsh", "wish", "expect", "osascript", "R"}
    | {"Rscript", "julia", "ghci", "irb", "guile", "racket", "scala", "groovy", "jshell", "pwsh", "powershell", "cmd"}
    | {"ssh", "scp", "sftp", "rsync", "rsh", "mosh", "telnet", "nc", "ncat", "netcat", "socat", "ftp", "lftp"}
    | {"gdb", "lldb", "valgrind", "perf", "vim", "vi", "view", "nvim", "ex", "ed", "emacs", "nano", "less", "more"}
    | {"most", "pg", "screen", "tmux", "sqlite3", "psql", "mysql", "mariadb", "mongosh", "redis-cli", "crontab", "at"}
    | {"batch", "systemctl", "launchctl", "open", "xdg-open", "dpkg", "apt", "apt-get", "dnf", "yum", "tcpdump", "zip"}
    | {"gcc", "g++", "cc", "c++", "clang", "clang++", "ld", "as", "ctags", "cpio", "ansible", "ansible-playbook"}
    | {"parallel", "make-kpkg", "m4", "cscope", "gimp", "ffmpeg", "convert", "magick", "openssl", "nmap", "wish"}
)
_INTERPRETERS = frozenset({"python", "node", "nodejs", "deno", "pypy", "ts-node", "tsx"})
_VERSION = re.compile(r"-?\d[\d.]*\Z")
_RUNS_FIRST_WORD = frozenset({"npx", "bunx", "pnpx", "uvx"})
_CONTAINERS: Mapping[str, tuple[str, ...]] = {
    "docker": ("run", "exec", "compose", "buildx", "container"),
    "podman": ("run", "exec", "compose", "container"),
    "kubectl": ("exec", "run", "debug", "cp"),
}
_VERB_RUNNERS: Mapping[str, tuple[str, ...]] = {
    "uv": ("run",),
    "poetry": ("run",),
    "pipenv": ("run",),
    "pdm": ("run",),
    "hatch": ("run",),
    "bundle": ("exec",),
    "npm": ("exec", "x", "init", "create"),
    "pnpm": ("exec", "dlx", "create"),
    "yarn": ("exec", "dlx", "create"),
    "bun": ("x", "create"),
}


def runner_problem(name: str, words: Sequence[str], named_words: int) -> str:
    """Empty, or why a wildcard rule does not cover this command of a program that runs others."""
    if name in SHELLS or name in _BUILTINS or _unversioned(name) in _PROGRAMS | SHELLS:
        return _only_exact(name)
    if _unversioned(name) in _INTERPRETERS:
        return _interpreter(name, words, named_words)
    if len(words) > 1 and words[1] in _CONTAINERS.get(name, ()):
        return _only_exact(f"{name} {words[1]}")
    at = inner_command(name, words)
    if not at:
        return _only_exact(name) if name in WRAPPERS else ""
    if named_words > at and len(words) > at and not words[at].startswith("-"):
        return ""
    return f"a rule must spell out what {name} runs ({' '.join(words[:at])} PROGRAM *)"


def inner_command(name: str, words: Sequence[str]) -> int:
    """Where the words of another program begin that a rule may spell out; 0 if there is none."""
    if name in _RUNS_FIRST_WORD:
        return 1
    if _unversioned(name) in _INTERPRETERS:
        return 2 if words[1:2] == ["-m"] or words[1:2] == ("-m",) else 0
    return 2 if len(words) > 1 and words[1] in _VERB_RUNNERS.get(name, ()) else 0


def _only_exact(name: str) -> str:
    return f"{name} runs what its arguments say; only a rule that spells the whole command covers it"


def _unversioned(name: str) -> str:
    """python3.11 is python."""
    return _VERSION.sub("", name)


def _interpreter(name: str, words: Sequence[str], named_words: int) -> str:
    if list(words[1:]) in (["--version"], ["-V"], ["-v"]):
        return ""
    at = 2 if list(words[1:2]) == ["-m"] else 1
    if named_words > at and len(words) > at and not words[at].startswith("-"):
        return ""
    return f"a rule must spell out what {name} runs ({name} FILE *, {name} -m MODULE *)"
