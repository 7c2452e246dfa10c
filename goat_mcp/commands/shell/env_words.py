"""`env -S TEXT`: the words that env makes of a text, by rules that differ from a shell's.

Source: GNU coreutils, "env invocation", -S/--split-string usage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from goat_mcp.commands.shell.words import Word

_OPTION = "--split-string"
_TAKE_A_VALUE = ("--unset", "--chdir", "--argv0")
_LETTERS_WITH_VALUE = "uCaPLU"
"""The last three are FreeBSD's and macOS's."""
_BLANKS = " \t\n\v\f\r"
_ESCAPES = {"f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "_": " ", **{char: char for char in "\"#$'\\"}}
_REFUSED = "env of text that it would refuse"


class UnknownWords(Exception):
    """The words are unknown; the reason, for a person."""


def split_string(rest: Sequence[Word], *, fed: bool) -> list[Word] | None:
    """The arguments of env after it has split the text of `-S`; None without that option.

    `fed`: it gets more words that are not in the script (from `xargs`). Raises `UnknownWords`.
    """
    index = 0
    while index < len(rest):
        word = rest[index]
        if not word.text.startswith("-") or word.text in ("-", "--"):
            return None
        if not word.literal:
            raise UnknownWords("env with an option that is not literal")
        index += 1
        is_split, value, takes_next = _read_option(word.text)
        if is_split and value is None:
            if index == len(rest):
                if fed:
                    raise UnknownWords("env with text that is not in the script")
                return None
            value = rest[index].text
            if not rest[index].literal:
                raise UnknownWords("env of text that is not literal")
            index += 1
        if is_split and value is not None:
            return [*_split(value), *rest[index:]]
        index += takes_next
    return None


def _read_option(text: str) -> tuple[bool, str | None, bool]:
    """Whether it is `-S`, its value if in the same word, and whether another option takes the next word."""
    if text.startswith("--"):
        name, equals, value = text.partition("=")
        if _OPTION.startswith(name):
            return True, value if equals else None, False
        return False, None, not equals and any(option.startswith(name) for option in _TAKE_A_VALUE)
    for at, letter in enumerate(text[1:], start=2):
        if letter == "S":
            return True, text[at:] or None, False
        if letter in _LETTERS_WITH_VALUE:
            return False, None, at == len(text)
    return False, None, False


@dataclass
class _Reading:
    """The words read so far; `text` is the one being read, None between words."""

    words: list[Word] = field(default_factory=list[Word])
    text: str | None = None
    literal: bool = True

    def add(self, char: str, *, literal: bool = True) -> None:
        self.text = (self.text or "") + char
        self.literal = self.literal and literal

    def end_word(self) -> None:
        if self.text is not None:
            self.words.append(Word(self.text, self.literal))
        self.text, self.literal = None, True


def _split(text: str) -> list[Word]:
    reading = _Reading()
    quote = ""
    index = 0
    while index < len(text):
        char = text[index]
        index += 1
        if char == "\\" and (quote != "'" or text[index : index + 1] in ("'", "\\")):
            escaped = text[index : index + 1]
            index += 1
            if escaped == "c" and not quote:
                break
            if escaped == "_" and not quote:
                reading.end_word()
            elif escaped in _ESCAPES:
                reading.add(_ESCAPES[escaped])
            else:
                raise UnknownWords(_REFUSED)
        elif char == quote:
            quote = ""
        elif not quote and char in "'\"":
            quote = char
            reading.add("")
        elif not quote and char in _BLANKS:
            reading.end_word()
        elif not quote and char == "#" and reading.text is None:
            break
        else:
            # `${NAME}` is replaced by env.
            reading.add(char, literal=char != "$" or quote == "'")
    if quote:
        raise UnknownWords(_REFUSED)
    reading.end_word()
    return reading.words
