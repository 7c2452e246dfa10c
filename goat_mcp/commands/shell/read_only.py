"""What programs do with their words, for rules about files: which programs only print them, list names, or never write,
and which words are no paths although they look like one (patterns, messages, scripts of sed).

All other programs may read and write each file that a word of theirs may name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from goat_mcp.commands.shell.options.build_tools import CHECKERS, SINGLE_TABLES, TOOLS
from goat_mcp.commands.shell.options.file_programs import find_problem
from goat_mcp.commands.shell.options.text_programs import READERS, sed_problem
from goat_mcp.commands.shell.options.verbs import VERB_TOOLS
from goat_mcp.commands.shell.words import names

PRINTS = names(
    "echo printf : true false exit return sleep test [ [[ expr kill seq basename dirname type wait shift break "
    "continue let unset umask ulimit declare typeset local export readonly read getopts set shopt jobs which"
)
"""Their words are texts, numbers and names of variables: no file is opened for them."""
LISTS = frozenset({"ls", "stat", "du", "df", "mkdir", "rmdir", "cd", "pushd", "popd", "realpath", "readlink"})
"""They show names, and never what is in a file."""
_OWN_CODE = names(
    "python python3 node deno bun ruby php lua java javac Rscript julia tox nox pip pip3 docker podman bash sh dash "
    "zsh source . rustc dotnet mvn gradle cmake ctest ninja meson bazel coverage pre-commit ssh gh kubectl"
)
"""What they write is their own affair: the words they are given are read."""
_CODE_OPTION = re.compile(r"-[a-zA-Z]*[cepr]\Z|--eval|--print")
"""The code is in the command, and so are the names that it holds."""
_READERS = names(
    "less more od strings base64 hexdump xxd zcat bzcat xzcat zgrep rgrep ag ack colordiff yq iconv nm objdump "
    "readelf ldd cksum b2sum sum look fmt pr"
)
_MAY_WRITE = frozenset({"sort", "uniq", "tar", "tree"})
_WRITE_SETTINGS = frozenset({"defaults", "security", "tmutil"})
"""Of macOS: a word may name a file of settings, a keychain, a backup."""
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
    if name in _WRITE_SETTINGS:
        return False
    return name in SINGLE_TABLES or name in TOOLS or name in VERB_TOOLS


_KEEP_STDIN_AS_DATA = names(
    "tee sponge mapfile readarray curl git gh glab patch kubectl docker podman helm xclip xsel pbcopy wl-copy "
    "clip.exe mail gzip bzip2 xz zstd gpg openssl md5sum sha1sum sha256sum sha512sum xargs parallel ssh pv"
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


_LEAVES_OUT = re.compile(r"--(?:exclude|exclude-dir|ignore|ignore-glob|deselect)(?:(=)|\Z)")
GREPS = frozenset({"grep", "egrep", "fgrep", "zgrep", "rgrep", "ugrep", "rg", "ag", "ack", "ggrep"})
_SHORT_VALUED = {"rg": "efmrtTgABCMjdE"}
_LONG_VALUED = re.compile(
    r"--(?:regexp|file|max-count|label|(?:after-|before-)?context|binary-files|devices|directories|exclude(?:-from|-dir)?"
    r"|include|replace|type(?:-not|-add|-clear)?|i?glob|max-(?:columns|depth|filesize)|threads|encoding|colors?"
    r"|sortr?|context-separator|engine|path-separator|ignore-file)\Z"
)
_PATTERN_OPTION = re.compile(r"--(?:regexp|exclude(?:-dir)?|include|i?glob|replace)(?:=|\Z)|-[^-]*[eg]")
_GIVES_PATTERN = re.compile(r"--(?:regexp|file)\b|--files\Z|--type-list\Z")
_MESSAGE_VERBS = frozenset({"commit", "tag", "stash", "notes", "merge", "revert", "cherry-pick"})
_MESSAGE = re.compile(r"-[a-zA-Z]*m\Z|--message\Z")
_MESSAGE_WITHIN = re.compile(r"-[a-zA-Z]*m.|--(?:message|author|date|format|pretty|grep)=|-[SG].")
_LOG_VALUES = frozenset({"--grep", "--author", "--committer", "--format", "--date", "--since", "--until", "-S", "-G"})
_TEXT = re.compile(r"(?:-[tb]|--(?:title|body|notes|message|description|search))(?:(=)|\Z)")
_FIND_TESTS = re.compile(r"-(?:i?(?:name|path|regex|lname)|i?wholename|regextype|type|size|perm)\Z")
_SED_SCRIPT = re.compile(r"-[nErsuz]*e\Z|--expression\Z")


def not_paths(name: str, words: Sequence[str]) -> frozenset[int]:
    """Which of a program's words are certainly no paths."""
    return _of_program(name, words) | frozenset(_left_out(name, words))


def _left_out(name: str, words: Sequence[str]) -> Iterator[int]:
    for at, word in enumerate(words):
        if found := _LEAVES_OUT.match(word):
            yield at if found[1] else at + 1
        elif word == "-x" and name in ("zip", "diff", "colordiff"):
            yield at + 1


def _of_program(name: str, words: Sequence[str]) -> frozenset[int]:
    if name in GREPS:
        return frozenset(_patterns(name, words))
    if name == "git":
        return frozenset(_messages(words))
    if name in ("gh", "glab"):
        return frozenset(at if found[1] else at + 1 for at, word in enumerate(words) if (found := _TEXT.match(word)))
    if name == "find":
        return frozenset(at + 1 for at, word in enumerate(words[:-1]) if _FIND_TESTS.match(word))
    if name in ("sed", "gsed"):
        return frozenset(at for at in _sed_scripts(words) if sed_problem(["-e", words[at]]) == "")
    return frozenset()


def _patterns(name: str, words: Sequence[str]) -> list[int]:
    found: list[int] = []
    operands: list[int] = []
    short = _SHORT_VALUED.get(name, "efmABCdD")
    has_pattern = any(_GIVES_PATTERN.match(word) for word in words)
    at = 0
    while at < len(words):
        word = words[at]
        if word == "--":
            operands += range(at + 1, len(words))
            break
        if not word.startswith("-") or word == "-":
            operands.append(at)
        elif word.startswith("--"):
            if _LONG_VALUED.match(word):
                found += [at + 1] if _PATTERN_OPTION.match(word) else []
                at += 1
            elif _PATTERN_OPTION.match(word):
                found.append(at)
        elif (letter := next((letter for letter in word[1:] if letter in short), "")) != "":
            has_pattern = has_pattern or letter in "ef"
            is_attached = not word.endswith(letter)
            if letter in "eg":
                found.append(at if is_attached else at + 1)
            at += 0 if is_attached else 1
        at += 1
    return found if has_pattern else found + operands[:1]


def _messages(words: Sequence[str]) -> list[int]:
    verb, start = git_verb(words)
    found: list[int] = []
    for at in range(start + 1, len(words)) if start >= 0 else ():
        word = words[at]
        if word == "--":
            break
        if verb in _MESSAGE_VERBS:
            if _MESSAGE.match(word):
                found.append(at + 1)
            elif _MESSAGE_WITHIN.match(word):
                found.append(at)
        elif verb in ("log", "show", "shortlog", "for-each-ref"):
            if word in _LOG_VALUES:
                found.append(at + 1)
            elif _MESSAGE_WITHIN.match(word) and not word.startswith("-m"):
                found.append(at)
        elif verb == "grep" and (word == "-e" or (at == start + 1 and not word.startswith("-"))):
            found.append(at + 1 if word == "-e" else at)
    return [at for at in found if at < len(words)]


def _sed_scripts(words: Sequence[str]) -> list[int]:
    by_option = [at + 1 for at, word in enumerate(words[:-1]) if _SED_SCRIPT.match(word)]
    if by_option or any(re.match(r"-[nErsuz]*[ef]|--(?:expression|file)", word) for word in words):
        return by_option
    return [at for at, word in enumerate(words) if not word.startswith("-")][:1]
