"""The simple commands of a shell script, as far as its text tells, and what follows from them for messages.

This is no parser that policy could rest on (R-SHELL-1): it serves messages and conveniences, which may be wrong
about an odd script without harm."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from goat_mcp.processes.process_table import command_line, living_process

MAX_SCRIPT_CHARS = 16_384
"""Longer scripts are not looked into."""

_BLANKS = " \t"
_OPERATORS = ";&|()\n"
_LEADING_WORDS = frozenset(
    {"if", "then", "elif", "else", "while", "until", "do", "!", "{", "time", "exec", "command", "builtin", "nohup"}
)
_CLOSING_WORDS = frozenset({"fi", "done", "esac", "}", "]]"})
_WRAPPERS = {
    "sudo": "-u -g -C -h -p",
    "doas": "-u -C",
    "env": "-u -C",
    "nice": "-n",
    "timeout": "-k -s",
    "stdbuf": "-i -o -e",
    "setsid": "",
    "xargs": "-n -I -P -L -d -a -s",
}
"""Programs that run the command after their own options, and which of those options take the next word."""
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh"})


@dataclass(frozen=True)
class SimpleCommand:
    """Words of one command after unquoting. `literal` says that bash would neither expand nor redirect anything."""

    words: tuple[str, ...]
    literal: bool

    @property
    def name(self) -> str:
        """The program's name without its directory; empty if there is none."""
        return PurePosixPath(self.words[0]).name if self.words else ""


def simple_commands(script: str) -> list[SimpleCommand]:
    """The commands of a script in their order, without reserved words, assignments and wrappers (`sudo`, `env`)
    before them; those of `sh -c TEXT` and `eval TEXT` follow their command."""
    if len(script) > MAX_SCRIPT_CHARS:
        return []
    found: list[SimpleCommand] = []
    for command in _Lexer(script).commands():
        bare = _without_leading_words(command)
        if bare.words and bare.words[0] not in _CLOSING_WORDS:
            found.append(bare)
            found.extend(_inner(bare))
    return found


def only_command(script: str) -> SimpleCommand | None:
    """The script's one command if it is just that, with nothing to expand, redirect or run beside it."""
    if len(script) > MAX_SCRIPT_CHARS:
        return None
    lexer = _Lexer(script.strip())
    commands = lexer.commands()
    if len(commands) == 1 and commands[0].literal and not lexer.saw_operator:
        return commands[0]
    return None


def _without_leading_words(command: SimpleCommand) -> SimpleCommand:
    words = list(command.words)
    while words:
        name = PurePosixPath(words[0]).name
        if words[0] in _LEADING_WORDS or _is_assignment(words[0]):
            del words[0]
        elif name in _WRAPPERS and len(words) > 1:
            with_value = _WRAPPERS[name].split()
            del words[0]
            while words and (words[0].startswith("-") or _is_assignment(words[0]) or words[0][:1].isdigit()):
                del words[: 2 if words[0] in with_value else 1]
        else:
            break
    return SimpleCommand(tuple(words), command.literal)


def _is_assignment(word: str) -> bool:
    name, equals, _ = word.partition("=")
    return bool(equals) and name.isidentifier()


def _inner(command: SimpleCommand) -> Sequence[SimpleCommand]:
    if command.name == "eval":
        return simple_commands(" ".join(command.words[1:]))
    if command.name in _SHELLS:
        for index, word in enumerate(command.words[1:-1], start=1):
            if word.startswith("-") and not word.startswith("--") and "c" in word:
                return simple_commands(command.words[index + 1])
    return ()


class _Lexer:
    """Splits a script into words and commands as bash does, but for expansions, which it only notes."""

    def __init__(self, script: str) -> None:
        self._text = script
        self._at = 0
        self._found: list[SimpleCommand] = []
        self._words: list[str] = []
        self._word: list[str] | None = None
        self._literal = True
        self._heredocs: list[str] = []
        self.saw_operator = False

    def commands(self) -> list[SimpleCommand]:
        while self._at < len(self._text):
            self._step(self._text[self._at])
        self._end_command()
        return self._found

    def _step(self, character: str) -> None:
        self._at += 1
        if character in _BLANKS:
            self._end_word()
        elif character in _OPERATORS:
            self.saw_operator = True
            self._end_command()
            if character == "\n":
                self._skip_heredocs()
        elif character == "#" and self._word is None:
            self._at = self._line_end(self._at)
        elif character == "\\":
            if self._text[self._at : self._at + 1] != "\n":
                self._add(self._text[self._at : self._at + 1])
            self._at += 1
        elif character == "'":
            self._add(self._until("'"))
        elif character == '"':
            self._double_quoted()
        elif character in "<>":
            self._redirection(character)
        else:
            if character in "$`*?[~{":
                self._literal = False
            if character == "`":
                self._end_command()
            else:
                self._add(character)

    def _add(self, text: str) -> None:
        self._word = [*(self._word or []), text]

    def _until(self, quote: str) -> str:
        end = self._text.find(quote, self._at)
        end = len(self._text) if end < 0 else end
        text = self._text[self._at : end]
        self._at = end + 1
        return text

    def _double_quoted(self) -> None:
        self._add("")
        while self._at < len(self._text):
            character = self._text[self._at]
            self._at += 1
            if character == '"':
                return
            if character == "\\" and self._text[self._at : self._at + 1] in ("$", "`", '"', "\\", "\n"):
                character = self._text[self._at]
                self._at += 1
            elif character in "$`":
                self._literal = False
            self._add(character)

    def _redirection(self, character: str) -> None:
        self._literal = False
        self._end_word()
        if character == "<" and self._text.startswith("<", self._at) and not self._text.startswith("<<", self._at):
            rest = self._text[self._at + 1 : self._line_end(self._at)].lstrip("- \t")
            words = rest.replace(";", " ").replace("|", " ").replace("&", " ").replace(")", " ").split()
            self._heredocs.append(words[0].strip("'\"\\") if words else "")
        while self._at < len(self._text) and self._text[self._at] in "<>&|-":
            self._at += 1

    def _skip_heredocs(self) -> None:
        for delimiter in self._heredocs:
            while self._at < len(self._text):
                end = self._line_end(self._at)
                line = self._text[self._at : end]
                self._at = end + 1
                if line.strip("\t") == delimiter:
                    break
        self._heredocs.clear()

    def _line_end(self, start: int) -> int:
        end = self._text.find("\n", start)
        return len(self._text) if end < 0 else end

    def _end_word(self) -> None:
        if self._word is not None:
            self._words.append("".join(self._word))
            self._word = None

    def _end_command(self) -> None:
        self._end_word()
        if self._words:
            self._found.append(SimpleCommand(tuple(self._words), self._literal))
        self._words = []
        self._literal = True


_ANSWER_BY_EXIT = frozenset({"grep", "egrep", "fgrep", "rg", "find", "diff", "test", "[", "[["})
_GIT_ANSWERS = frozenset({"diff", "grep"})
_GIT_OPTIONS_WITH_VALUE = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace"})


def exit_1_is_an_answer(script: str) -> bool:
    """Whether exit code 1 of this script only says "nothing found", "different" or "no": its last command decides."""
    commands = simple_commands(script)
    if not commands:
        return False
    last = commands[-1]
    return last.name in _ANSWER_BY_EXIT or (last.name == "git" and _git_verb(last) in _GIT_ANSWERS)


def _git_verb(command: SimpleCommand) -> str:
    words = iter(command.words[1:])
    for word in words:
        if word in _GIT_OPTIONS_WITH_VALUE:
            next(words, None)
        elif not word.startswith("-"):
            return word
    return ""


_SERVER_NAMES = ("goat-mcp", "goat_mcp")
_PKILL_VALUE_OPTIONS = frozenset("PgGstuUFdrq")


def kill_of_this_server(script: str) -> str | None:
    """The words of the first command in `script` that would signal this process, else None.

    Looks at `pkill` and `killall` by the patterns that match this process (or its name, goat-mcp), and at `kill`
    with its number, `$PPID` (that is us, for a command) or `-1` (everybody).
    """
    for command in simple_commands(script):
        judge = {"pkill": _pkill, "killall": _killall, "kill": _kill}.get(command.name)
        if judge is not None and judge(command):
            return " ".join(command.words)
    return None


def _pkill(command: SimpleCommand) -> bool:
    full = exact = ignore_case = narrowed = False
    patterns: list[str] = []
    words = iter(command.words[1:])
    for word in words:
        if word.startswith("--"):
            full, exact = full or word == "--full", exact or word == "--exact"
            ignore_case = ignore_case or word == "--ignore-case"
            narrowed = narrowed or word.startswith(("--parent", "--pgroup", "--session", "--terminal"))
        elif word.startswith("-") and not (word[1:].isdigit() or (word[1:].isupper() and len(word) > 2)):
            full, exact, ignore_case = full or "f" in word, exact or "x" in word, ignore_case or "i" in word
            narrowed = narrowed or bool(set(word) & set("Pgst"))
            if word[-1] in _PKILL_VALUE_OPTIONS:
                next(words, None)
        elif not word.startswith("-"):
            patterns.append(word)
    # Restricted to some parent, group, session or terminal: hardly ours, and not worth working out.
    return not narrowed and any(_matches_this_server(pattern, full, exact, ignore_case) for pattern in patterns)


def _matches_this_server(pattern: str, full: bool, exact: bool, ignore_case: bool) -> bool:
    own = living_process(os.getpid())
    subjects = [command_line(os.getpid()) if full else own.name if own is not None else ""]
    if full:
        subjects.extend(_SERVER_NAMES)
    try:
        expression = re.compile(pattern, re.IGNORECASE if ignore_case else 0)
    except re.error:
        return any(name in pattern for name in _SERVER_NAMES)
    match = expression.fullmatch if exact else expression.search
    return any(match(subject) for subject in subjects if subject) or pattern in _SERVER_NAMES


def _killall(command: SimpleCommand) -> bool:
    own = living_process(os.getpid())
    own_names = {*_SERVER_NAMES, own.name if own is not None else ""}
    return any(word in own_names for word in command.words[1:] if not word.startswith("-"))


def _kill(command: SimpleCommand) -> bool:
    words = list(command.words[1:])
    if words and words[0] in ("-s", "-n"):
        del words[:2]
    elif words and words[0].startswith("-") and words[0] != "--":
        del words[:1]
    us = {str(os.getpid()), "$PPID", "${PPID}", "-1", f"-{os.getpgrp()}"}
    return any(word in us for word in words)
