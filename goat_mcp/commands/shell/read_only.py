"""Programs as rules about files see them: those that only print their words, list names, or never write what they are
given. All others may read and write each file that a word of theirs may name."""

from __future__ import annotations

import re
from collections.abc import Sequence

from goat_mcp.commands.shell.options.build_tools import CHECKERS, SINGLE_TABLES, TOOLS
from goat_mcp.commands.shell.options.file_programs import find_problem
from goat_mcp.commands.shell.options.sed import sed_problem
from goat_mcp.commands.shell.options.text_programs import READERS
from goat_mcp.commands.shell.options.verbs import VERB_TOOLS

PRINTS = frozenset(
    {"echo", "printf", ":", "true", "false", "exit", "return", "sleep", "test", "[", "[[", "expr", "kill", "seq"}
    | {"basename", "dirname", "type", "wait", "shift", "break", "continue", "let", "unset", "umask", "ulimit"}
    | {"declare", "typeset", "local", "export", "readonly", "read", "getopts", "set", "shopt", "jobs", "which"}
)
"""Their words are texts, numbers and names of variables: no file is opened for them."""
LISTS = frozenset({"ls", "stat", "du", "df", "mkdir", "rmdir", "cd", "pushd", "popd", "realpath", "readlink"})
"""They show names, and never what is in a file."""
_OWN_CODE = frozenset(
    {"python", "python3", "node", "deno", "bun", "ruby", "php", "lua", "java", "javac", "Rscript", "julia", "tox"}
    | {"nox", "pip", "pip3", "docker", "podman", "bash", "sh", "dash", "zsh", "source", ".", "rustc", "dotnet", "mvn"}
    | {"gradle", "cmake", "ctest", "ninja", "meson", "bazel", "coverage", "pre-commit", "ssh", "gh", "kubectl"}
)
"""What they write is their own affair: the words they are given are read."""
_CODE_OPTION = re.compile(r"-[a-zA-Z]*[cepr]\Z|--eval|--print")
"""The code is in the command, and so are the names that it holds."""
_READERS = frozenset(
    {"less", "more", "od", "strings", "base64", "hexdump", "xxd", "zcat", "bzcat", "xzcat", "zgrep", "rgrep", "ag"}
    | {"ack", "colordiff", "yq", "iconv", "nm", "objdump", "readelf", "ldd", "cksum", "b2sum", "sum", "look", "fmt"}
    | {"pr"}
)
_MAY_WRITE = frozenset({"sort", "uniq", "tar", "tree"})
_GIT_WRITES = frozenset(
    {"checkout", "restore", "mv", "rm", "apply", "clean", "reset", "stash", "am", "read-tree", "checkout-index"}
    | {"update-index", "worktree", "archive", "bundle", "format-patch", "init", "clone", "mergetool", "sparse-checkout"}
)
_GIT_OUTPUT = re.compile(r"--o\w*")
GIT_NAMES_ONLY = frozenset({"push", "fetch", "pull", "branch", "switch", "rev-parse", "describe", "merge-base"})
"""Verbs whose words are revisions, branches and remotes, and never files to read."""
_COMPILERS = frozenset({"gcc", "cc", "g++", "c++", "clang", "clang++"})


def git_verb(words: Sequence[str]) -> tuple[str, int]:
    """The verb of a git command and where it stands; -1 if there is none."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in ("-C", "-c", "--git-dir", "--work-tree", "--namespace") else 1
    return (words[at], at) if at < len(words) else ("", -1)


def only_reads(name: str, words: Sequence[str]) -> bool:
    """Whether the program never writes the files that its words name."""
    if name == "ruff":
        return words[:1] != ["format"] and not any(word.startswith(("--fix", "--out", "-o")) for word in words)
    if name in _OWN_CODE:
        return not any(_CODE_OPTION.match(word) for word in words)
    if name in PRINTS or name in _READERS or name == "env":
        return name != "xxd" or len([word for word in words if not word.startswith("-")]) < 2
    if name in ("sed", "gsed"):
        return sed_problem(words) == ""
    if name == "find":
        return find_problem(words) == ""
    if name == "git":
        return git_verb(words)[0] not in _GIT_WRITES and not any(_GIT_OUTPUT.match(word) for word in words)
    if name in READERS:
        return name not in _MAY_WRITE
    if name in CHECKERS:
        return CHECKERS[name].problem(words) == ""
    if name in _COMPILERS:
        return not any(re.match(r"-o|-M|--o|-save|-f?dump|-aux", word) for word in words)
    return name in SINGLE_TABLES or name in TOOLS or name in VERB_TOOLS


_KEEP_STDIN_AS_DATA = frozenset(
    {"tee", "sponge", "mapfile", "readarray", "curl", "git", "gh", "glab", "patch", "kubectl", "docker", "podman"}
    | {
        "helm",
        "xclip",
        "xsel",
        "pbcopy",
        "wl-copy",
        "clip.exe",
        "mail",
        "gzip",
        "bzip2",
        "xz",
        "zstd",
        "gpg",
        "openssl",
    }
    | {"md5sum", "sha1sum", "sha256sum", "sha512sum", "xargs", "parallel", "ssh", "pv"}
)
"""Beside those that only read. The names that `xargs` is given are a matter of their own."""
_TAKES_NAMES = re.compile(r"--stdin|--pathspec-from-file|--batch")
_TAKES_CODE = re.compile(r"-[a-zA-Z]*f|--file")


def takes_stdin_as_data(name: str, words: Sequence[str]) -> bool:
    """Whether text on a program's standard input is only text to it: no code, and no names of files."""
    if name == "git":
        return not any(_TAKES_NAMES.match(word) for word in words)
    if name in ("sed", "gsed", "awk", "gawk", "mawk", "nawk"):
        return not any(_TAKES_CODE.match(word) for word in words)
    return name in PRINTS or name in LISTS or name in READERS or name in _READERS or name in _KEEP_STDIN_AS_DATA


VERB_PROGRAMS = frozenset(VERB_TOOLS) | frozenset(TOOLS) | {"git", "docker", "helm", "terraform", "aws", "gcloud"}
"""A bare word of theirs is a verb or a name more often than a folder: `kubectl get secrets`."""
