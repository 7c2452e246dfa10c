"""How a command uses a file: the words of a command that name files, the paths that one may hold, and their use.

Where a path leads is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

HERE, NUMBER, TIME = "\x01", "\x02", "\x03"
"""Stand in a text for the script's directory, for a number, and for the output of `date`. No script has these
characters."""


@dataclass(frozen=True)
class FileUse:
    """`text` is a word, or a part of one, with its variables filled in; `magic`: its `*` and `?` are wildcards.

    `writes`: the file is certainly changed, made or removed; `may_write`: perhaps. Else it is named, and perhaps read.
    `contents`: a folder counts as its content, if a rule means all of that.
    `below`: all below a folder is used, but for names that match `leaves_out` (with `/` at the end directories only,
    with `|` files only; with `/` at the beginning a path from the folder). With `follows` also the targets of links,
    without `sees_hidden` no name that begins with a dot.
    `inside`: some file in it is written, with an unknown name.
    """

    text: str
    magic: bool = False
    writes: bool = False
    may_write: bool = False
    contents: bool = False
    below: bool = False
    inside: bool = False
    leaves_out: tuple[str, ...] = ()
    follows: bool = False
    sees_hidden: bool = True


@dataclass(frozen=True)
class FileDoubt:
    """A `word` that cannot be followed as bash would, why, and whether it may write."""

    word: str
    why: str
    may_write: bool = True


_MAX_SUFFIXES = 24
_MAX_LETTERS = 12
_SEPARATOR = re.compile(r"[=@:,]")
_BETWEEN = re.compile(r"[\s\"'`(){}<>;|&=@:,\[\]?#]+")
_FILE_URL = re.compile(rf"file:(?://[^/{HERE}]*)?([/{HERE}].*)", re.IGNORECASE | re.DOTALL)
_ODD_IN_URL = re.compile(r"[%\[\]{}\\]")
_OTHER_HOME = re.compile(r"(?:^|[=:])~[\w.-]")


def parts_of(text: str) -> Iterator[str]:
    """The paths that a word may hold: `k`, `--file=k`, `if=k`, `-fk`, `-d@k`, `host:k`, `"open('k')"`, `file:///k`.

    One rule for all programs: in doubt a part counts as a path.
    """
    yield text
    if text.startswith("-") and not text.startswith("--"):
        for at in range(2, min(len(text), _MAX_LETTERS)):
            yield text[at:]
    for _, found in zip(range(_MAX_SUFFIXES), _SEPARATOR.finditer(text), strict=False):
        yield text[found.end() :]
    if (found := _FILE_URL.search(text)) is not None:
        yield found[1]
    parts = _BETWEEN.split(text)
    if len(parts) > 1:
        yield from filter(None, parts)


def cannot_tell(text: str) -> str:
    """Why the paths of a word with known text cannot be followed; empty if they can."""
    if _OTHER_HOME.search(text):
        return "of the homes only `~` is followed"
    if (found := _FILE_URL.search(text)) is not None and _ODD_IN_URL.search(found[1]):
        return "a URL with such characters is not followed"
    return ""


@dataclass(frozen=True)
class Operands:
    """The words of a command that are no options, its options (letters of a cluster such as `-rn` one by one), and the
    values of some options."""

    words: tuple[str, ...]
    options: tuple[str, ...]
    values: tuple[tuple[str, str], ...] = field(default=())

    def has(self, *options: str) -> bool:
        return any(one in options for one in self.options)

    def value_of(self, *options: str) -> tuple[str, ...]:
        return tuple(value for option, value in self.values if option in options)


def operands(arguments: Sequence[str], valued: str = "") -> Operands:
    """`valued`: options that take a value, e.g. `-e -g --glob`. A value of an option not named there is an operand."""
    takes_value = frozenset(valued.split())
    words: list[str] = []
    options: list[str] = []
    values: list[tuple[str, str]] = []
    waiting = list(arguments)
    while waiting:
        word = waiting.pop(0)
        if word == "--":
            words += waiting
            break
        if not word.startswith("-") or word == "-":
            words.append(word)
        elif word.startswith("--"):
            name, equals, value = word.partition("=")
            options.append(name)
            if equals:
                values.append((name, value))
            elif name in takes_value and waiting:
                values.append((name, waiting.pop(0)))
        else:
            _cluster(word, takes_value, options, values, waiting)
    return Operands(tuple(words), tuple(options), tuple(values))


def _cluster(
    word: str, takes_value: frozenset[str], options: list[str], values: list[tuple[str, str]], waiting: list[str]
) -> None:
    if word in takes_value and waiting:
        # `-exec`, `-name`: a single dash before a whole name.
        options.append(word)
        values.append((word, waiting.pop(0)))
        return
    options.append(word)
    for at, letter in enumerate(word[1:], start=2):
        option = f"-{letter}"
        options.append(option)
        if option in takes_value:
            if at < len(word):
                values.append((option, word[at:]))
            elif waiting:
                values.append((option, waiting.pop(0)))
            return
