"""Programs whose arguments are programs. A wildcard rule covers one only where it spells out what is run: a rule
`python -m pytest *` does, `python *` does not, and for `env`, `sudo`, `bash` or `xargs` only an exact rule will do."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from goat_mcp.shell.unwrapping import SHELLS, WRAPPERS

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
_VERB_RUNNERS: Mapping[str, tuple[str, ...]] = {
    "uv": ("run",),
    "poetry": ("run",),
    "pipenv": ("run",),
    "pdm": ("run",),
    "hatch": ("run",),
    "bundle": ("exec",),
    "docker": ("run", "exec", "compose", "buildx"),
    "podman": ("run", "exec", "compose"),
    "kubectl": ("exec", "run", "debug", "cp"),
    "npm": ("exec", "x", "init", "create"),
    "pnpm": ("exec", "dlx", "create"),
    "yarn": ("exec", "dlx", "create"),
    "bun": ("x", "create"),
}


def runner_problem(name: str, words: Sequence[str], named_words: int) -> str:
    """Empty, or why a wildcard rule does not cover this command of a program that runs others. `words`: all words."""
    only_exact = f"{name} runs what its arguments say; only a rule that spells the whole command covers it"
    if name in ("npx", "bunx", "pnpx", "uvx"):
        spelled = named_words > 1 and len(words) > 1 and not words[1].startswith("-")
        return "" if spelled else f"a rule must spell out what {name} runs ({name} PROGRAM *)"
    if _unversioned(name) in SHELLS or name in WRAPPERS or name in _BUILTINS or _unversioned(name) in _PROGRAMS:
        return only_exact
    if _unversioned(name) in _INTERPRETERS:
        return _interpreter(name, words, named_words)
    verbs = _VERB_RUNNERS.get(name, ())
    if len(words) > 1 and words[1] in verbs:
        spelled = named_words > 2 and len(words) > 2 and not words[2].startswith("-")
        if not spelled or name in ("docker", "podman", "kubectl"):
            return only_exact
        return runner_problem(words[2].rpartition("/")[2], words[2:], named_words - 2)
    return ""


def is_runner(name: str, words: Sequence[str]) -> bool:
    """Whether `runner_problem` has the last word on this command."""
    return (
        name in ("npx", "bunx", "pnpx", "uvx")
        or _unversioned(name) in _INTERPRETERS
        or (len(words) > 1 and words[1] in _VERB_RUNNERS.get(name, ()))
    )


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
