"""Which table speaks for a command, or none: `unknown`."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from goat_mcp.commands.shell.options.build_tools import CHECKERS, SINGLE_TABLES, TOOLS, tool_problem
from goat_mcp.commands.shell.options.file_programs import FILE_PROGRAMS, find_problem, tar_problem
from goat_mcp.commands.shell.options.git import git_problem
from goat_mcp.commands.shell.options.text_programs import TEXT_PROGRAMS, WEB_PROGRAMS, sed_problem
from goat_mcp.commands.shell.options.verbs import VERB_TOOLS, unknown_problem, verb_problem
from goat_mcp.commands.shell.running_programs import SHELLS, WRAPPERS
from goat_mcp.commands.shell.words import bare_name, names

_BUILTINS = names(
    "eval source . trap alias unalias hash history enable set shopt mapfile fc readarray bind complete compgen let "
    "read unset wait getopts declare typeset local export readonly pushd popd dirs test suspend logout exit return "
    "break continue shift umask ulimit caller disown fg bg compopt times"
)
"""Of bash: they run text, change what later words mean, or evaluate subscripts in their arguments."""
_PROGRAMS = names(
    "awk gawk mawk nawk perl ruby php lua luajit tclsh wish expect osascript R Rscript julia ghci irb guile racket "
    "scala groovy jshell pwsh powershell cmd ssh scp sftp rsync rsh mosh telnet nc ncat netcat socat ftp lftp gdb "
    "lldb valgrind perf vim vi view nvim ex ed emacs nano less more most pg screen tmux sqlite3 psql mysql mariadb "
    "mongosh redis-cli crontab at batch systemctl launchctl open xdg-open dpkg apt apt-get dnf yum tcpdump zip gcc "
    "g++ cc c++ clang clang++ ld as ctags cpio ansible ansible-playbook parallel make-kpkg m4 cscope gimp ffmpeg "
    "convert magick openssl nmap automator shortcuts dscl installer scutil PlistBuddy"
)
_LIKE_PROGRAMS = re.compile(
    r"[rg]?vim?(?:diff)?|emacs(?:client)?|.*awk|qemu-.*|.*-(?:gcc|g\+\+|cc|ld)|ld(?:-.*)?\.so.*"
)
_INTERPRETERS = names(
    "python pythonw ipython bpython ptpython jython pypy node nodejs deno ts-node tsx jruby java dotnet mono wine "
    "wine64 swift elixir iex erl raku octave sbcl"
)
_VARIANT = re.compile(
    r"(?:(?<![\d_])-?\d[\d.]*+[a-z]?(?:-[\w.+-]+)?"
    r"|\.(?:tiny|basic|nox|gtk\d?|athena|distrib|real|static|exe|old|orig|bin)|-(?:dbg|debug|static|old))\Z"
)
"""python3.11-dbg, vim.tiny, bash-static"""
_MAX_NAME_CHARS = 64
_RUNS_FIRST_WORD = frozenset({"npx", "bunx", "pnpx", "uvx"})
_RUNS_SCRIPTS = frozenset({"npm", "pnpm", "yarn", "bun"})
"""What follows their scripts' names is for those; options before a verb are refused elsewhere."""
_VERB_RUNNERS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("uv", "poetry", "pipenv", "pdm", "hatch", "rye", "conda", "mamba", "micromamba"), ("run",)),
    **dict.fromkeys(("bundle", "asdf", "rbenv", "pyenv", "direnv", "nvm", "volta", "nodenv", "goenv"), ("exec", "run")),
    **dict.fromkeys(("mise", "rtx"), ("exec", "x", "run")),
    "npm": ("exec", "x", "init", "create"),
    "pnpm": ("exec", "dlx", "create"),
    "yarn": ("exec", "dlx", "create"),
    "bun": ("x", "create"),
}


def runner_problem(name: str, words: Sequence[str], named_words: int) -> str:
    """Empty, or why a wildcard rule does not cover this command of a program that runs others."""
    plain = _without_variant(name)
    if plain not in _PROGRAMS:
        # Where letter case does not count Python is python.
        plain = plain.casefold()
    if name in _BUILTINS or plain in _PROGRAMS | SHELLS or _LIKE_PROGRAMS.fullmatch(plain):
        return _only_exact(name)
    if plain in _INTERPRETERS:
        return _interpreter(name, words, named_words)
    at = inner_command(name, words)
    if not at:
        return _only_exact(name) if plain in WRAPPERS else ""
    if named_words > at and len(words) > at and not words[at].startswith("-"):
        return ""
    return f"a rule must spell out what {name} runs ({' '.join(words[:at])} PROGRAM *)"


def is_interpreter(name: str) -> bool:
    return _without_variant(name) in _INTERPRETERS


def inner_command(name: str, words: Sequence[str]) -> int:
    """Where the words of another program begin that a rule may spell out; 0 if there is none."""
    if name in _RUNS_FIRST_WORD:
        return 1
    if is_interpreter(name):
        return 2 if list(words[1:2]) == ["-m"] else 0
    verbs = _VERB_RUNNERS.get(name, ())
    # The verb may stand behind options, whose values nobody knows: `uv -q run`, `uv tool run`.
    return next(
        (
            index + 1
            for index, word in enumerate(words[1:], start=1)
            if word in verbs and (index == 1 or name not in _RUNS_SCRIPTS)
        ),
        0,
    )


def _only_exact(name: str) -> str:
    return f"{name} runs what its arguments say; only a rule that spells the whole command covers it"


def _without_variant(name: str) -> str:
    """python3.11-dbg is python."""
    return _VARIANT.sub("", name) if len(name) <= _MAX_NAME_CHARS else name


def _interpreter(name: str, words: Sequence[str], named_words: int) -> str:
    if list(words[1:]) in (["--version"], ["-V"], ["-v"]):
        return ""
    at = 2 if words[1:2] and words[1] in ("-m", "run", "-jar") else 1
    if named_words > at and len(words) > at and not words[at].startswith("-"):
        return ""
    return f"a rule must spell out what {name} runs ({name} FILE *, {name} -m MODULE *)"


def unsafe_option(words: Sequence[str], *, named_words: int = 1, spelled: Collection[str] = ()) -> str:
    """Empty, or why a rule with a wildcard does not cover this command although it matches.

    `named_words`: how many of the first words the rule spells out (`git commit *`: 2). `spelled`: the words that it
    spells out wherever they stand.
    """
    name = bare_name(words[0])
    if problem := runner_problem(name, words, named_words):
        return problem
    if at := inner_command(name, words):
        # Spelled out by the rule, so its own table speaks for the rest.
        return unsafe_option(words[at:], named_words=named_words - at, spelled=spelled)
    problem = _problem(name, words, named_words, spelled)
    return f"{name} {problem}" if problem else ""


def _problem(name: str, words: Sequence[str], named_words: int, spelled: Collection[str]) -> str:
    arguments = words[1:]
    for tables in (TEXT_PROGRAMS, WEB_PROGRAMS, FILE_PROGRAMS, SINGLE_TABLES, CHECKERS):
        if (table := tables.get(name)) is not None:
            return table.problem(arguments)
    match name:
        case "echo":
            return ""  # it has no option that does anything but print
        case "git":
            return git_problem(words, named_words)
        case "find":
            return find_problem(arguments)
        case "sed" | "gsed":
            return sed_problem(arguments)
        case "tar" | "gtar" | "bsdtar":
            return tar_problem(arguments)
        case _ if name in VERB_TOOLS:
            return verb_problem(name, words, named_words, spelled)
        case _ if name in TOOLS:
            return tool_problem(name, arguments, named_words)
        case _:
            return unknown_problem(words, named_words, spelled)
