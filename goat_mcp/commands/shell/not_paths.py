"""Words that are no paths although they may look like one: patterns, messages, scripts of sed that only print."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from goat_mcp.commands.shell.options.sed import sed_problem
from goat_mcp.commands.shell.read_only import git_verb

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
