"""Permission rules for commands, `npm run *`, `npm run:*`, `npm run build` (R-SHELL-3), and what they mean for a
script: allow rules cover it, a deny or ask rule matches. Their order is decided elsewhere.

A pattern is compared with a command's words after unquoting, never with its text. As in Claude Code, ` *` at the end
stands for any further words or none (`npm run *` is also `npm run` itself) and `:*` at the end is an older way to
write it. Elsewhere a lone `*` stands for one or more words. A `*` inside a word stands for the rest of that word,
and where the pattern ends with it, for any further words too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TypeVar

from goat_mcp.commands.shell.options.text_programs import READERS
from goat_mcp.commands.shell.options.unsafe import unsafe_option
from goat_mcp.commands.shell.script_parsing import ShellScript
from goat_mcp.commands.shell.words import bare_name

_P = TypeVar("_P")
_T = TypeVar("_T")

_STAR = None
"""A wildcard among a pattern's characters or words."""
_OPERATORS = frozenset(";&|<>()\n")


@dataclass(frozen=True)
class CommandPattern:
    """One pattern. `text` is what the user wrote."""

    text: str
    parts: tuple[tuple[str | None, ...] | None, ...]
    """For each word its characters, None for any text; a word that is None stands for any words."""

    @classmethod
    def parse(cls, text: str) -> CommandPattern:
        """Raises `ValueError` with the reason for a pattern that could never mean what it says."""
        parts = _split(text.strip())
        if not parts:
            raise ValueError("the pattern is empty; write e.g. `npm run *`, or the tool alone for any command")
        last = parts[-1]
        if len(last) > 2 and last[-2:] == (":", _STAR):
            parts[-1:] = [last[:-2], (_STAR,)]
        if any(first is _STAR and second is _STAR for part in parts for first, second in pairwise(part)):
            raise ValueError(f"`{text}`: `**` has no meaning for commands; write `*`")
        elements: list[tuple[str | None, ...] | None] = []
        for index, part in enumerate(parts):
            is_last = index == len(parts) - 1
            if part != (_STAR,):
                elements.append(part)
            elif not is_last:
                # One word at least: `git * main` is not `git main`.
                elements.append((_STAR,))
            if part == (_STAR,) or (is_last and part[-1:] == (_STAR,)):
                elements.append(None)
        return cls(text, tuple(elements))

    @property
    def is_exact(self) -> bool:
        """No wildcard at all: the user has spelled the whole command."""
        return all(part is not None and None not in part for part in self.parts)

    @property
    def names_any_program(self) -> bool:
        """Nothing of the program's name is spelled out: `*`, `* --version`. `ls*` says something: `lsof`, too."""
        return not any(character is not None for character in self.parts[0] or ())

    @property
    def named_words(self) -> int:
        """How many words from the start are spelled out."""
        for index, part in enumerate(self.parts):
            if part is None or None in part:
                return index
        return len(self.parts)

    def spells(self, word: str) -> bool:
        """Whether the pattern names this word, or an option of this beginning: `--output=*`."""
        return any(
            part is not None and (None not in part or _names_an_option(part)) and _word_matches(part, word)
            for part in self.parts
        )

    def matches(self, words: Sequence[str]) -> bool:
        """Whether the pattern matches these words, the program as it was written first."""
        return _glob(self.parts, words, _word_matches)

    def matches_any_spelling(self, words: Sequence[str]) -> bool:
        """`matches` for deny rules: the program's directory and letter case do not count."""
        return _glob(self._any_spelling, (bare_name(words[0]).casefold(), *words[1:]), _word_matches)

    @cached_property
    def program(self) -> str:
        """The program's name without its directory, in lower case; empty if it has a star before its end (`r*m`)."""
        name = self.parts[0] or (None,)
        named = name[:-1] if name[-1] is None else name
        return bare_name("".join(character or "" for character in named)).casefold() if None not in named else ""

    @cached_property
    def only_program(self) -> str:
        """`program`, if the pattern matches no other one; else empty."""
        name = self.parts[0]
        return "" if name is None or None in name else self.program

    @cached_property
    def _any_spelling(self) -> tuple[tuple[str | None, ...] | None, ...]:
        return (tuple(self.only_program), *self.parts[1:]) if self.only_program else self.parts


def _names_an_option(part: Sequence[str | None]) -> bool:
    beginning = "".join(character for character in part[: part.index(None)] if character is not None)
    return beginning.startswith("-") and len(beginning.lstrip("-")) > 1


def _word_matches(part: Sequence[str | None], word: str) -> bool:
    return _glob(part, word, lambda expected, character: expected == character)


def _glob(pattern: Sequence[_P | None], items: Sequence[_T], same: Callable[[_P, _T], bool]) -> bool:
    """Whether `items` are `pattern`, in which None stands for any number of them. At worst len * len steps."""
    at = item = 0
    star, retry = -1, 0
    while item < len(items):
        part = pattern[at] if at < len(pattern) else ...
        if part is None:
            star, retry = at, item
            at += 1
        elif part is not ... and same(part, items[item]):
            at += 1
            item += 1
        elif star >= 0:
            retry += 1
            at, item = star + 1, retry
        else:
            return False
    return all(part is None for part in pattern[at:])


def _split(text: str) -> list[tuple[str | None, ...]]:
    """The words of a pattern after unquoting, as characters; an unquoted `*` is None."""
    found: list[tuple[str | None, ...]] = []
    word: list[str | None] | None = None
    quote = ""
    characters = iter(text)
    for character in characters:
        if character == "\\" and quote != "'":
            following = next(characters, "")
            if not following:
                raise ValueError(f"`{text}` ends in a backslash")
            word = [*(word or []), *(() if not quote or following in '"\\$`' else ("\\",)), following]
        elif quote:
            if character == quote:
                quote = ""
            else:
                word = [*(word or []), character]
        elif character in "'\"":
            quote = character
            word = word or []
        elif character in " \t":
            if word is not None:
                found.append(tuple(word))
            word = None
        elif character in _OPERATORS:
            raise ValueError(f"`{text}`: a rule is for one command, without `{character.strip() or 'line end'}`")
        else:
            word = [*(word or []), _STAR if character == "*" else character]
    if quote:
        raise ValueError(f"`{text}`: the quote {quote} is not closed")
    return found if word is None else [*found, tuple(word)]


_SHOWN_CHARS = 60
_CHANGE_DIRECTORY = frozenset({"cd", "pushd", "popd"})


def allowed_by(script: ShellScript, patterns: Sequence[CommandPattern]) -> str:
    """Empty if the allow patterns cover each command of a plain script, else why not."""
    if script.not_plain:
        return f"holds {script.not_plain}, and no rule lets that pass unasked"
    if any(_changes_directory(words) for words in script.commands):
        # The rule's `make`, `./run.sh` and the hardened repository belong to the directory that the script begins in.
        other = next((words[0] for words in script.commands if not _is_same_everywhere(words[0])), "")
        if other:
            return f"changes the directory and runs {other}, which would do what that directory holds"
    for words in script.commands:
        if reason := _not_covered(words, patterns):
            return reason
    return ""


def _changes_directory(words: Sequence[str]) -> bool:
    # `command cd x` and `builtin cd x` have an exact rule.
    return not _CHANGE_DIRECTORY.isdisjoint(words if words[0] in ("command", "builtin", "eval") else words[:1])


def _is_same_everywhere(name: str) -> bool:
    """Whether a program runs nothing from the directory in which it is started."""
    is_relative = "/" in name and not name.startswith("/")
    return name in _CHANGE_DIRECTORY or (not is_relative and bare_name(name) in READERS)


def denied_by(script: ShellScript, pattern: CommandPattern) -> bool:
    """Whether the pattern of a deny or ask rule matches a command of the script, or a word that a program may run.

    The caller checks `hidden`.
    """
    return _is_command(script, pattern) or _mention(script, pattern) != ""


def why_denied(script: ShellScript, pattern: CommandPattern) -> str:
    """The word with the program that a rule names, and why it counts; empty if that is a command, or in no word."""
    if _is_command(script, pattern):
        return ""
    mention = _mention(script, pattern)
    if not mention:
        return ""
    shown = _shortened(mention)
    return f"`{shown}` names {pattern.program}, and may run it: only in what is known to be mere text a name is none"


def _is_command(script: ShellScript, pattern: CommandPattern) -> bool:
    if pattern.only_program and pattern.only_program not in script.programs:
        return False
    return any(pattern.matches_any_spelling(words) for words in script.all_commands)


def _mention(script: ShellScript, pattern: CommandPattern) -> str:
    """The word in which the program of a pattern stands, if the pattern matches there; else empty."""
    if not pattern.program or not script.mentions.may_name(pattern.program):
        return ""
    mentions = script.mentions.of(pattern.program)
    return next((text for text, command in mentions if pattern.matches_any_spelling(command)), "")


def _not_covered(words: Sequence[str], patterns: Sequence[CommandPattern]) -> str:
    shown = _shortened(" ".join(words))
    reason = f"no rule allows `{shown}`"
    for pattern in patterns:
        if not pattern.matches(words):
            continue
        if pattern.is_exact:
            return ""
        if pattern.names_any_program:
            reason = f"`{shown}`: the rule {pattern.text} names no program"
            continue
        unsafe = unsafe_option(
            words,
            named_words=pattern.named_words,
            spelled=frozenset(word for word in words if pattern.spells(word)),
        )
        if not unsafe:
            return ""
        reason = f"`{shown}`: {unsafe}"
    return reason


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 3] + "..."
