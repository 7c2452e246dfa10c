"""The words of a command after bash's unquoting, and the limits on how much of a script is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Words = tuple[str, ...]
"""The words of one command, unquoted, its program first."""


def bare_name(word: str) -> str:
    """The name without its directory."""
    return word.rstrip("/").rpartition("/")[2] or word


MAX_SCRIPT_BYTES = 16_384
MAX_COMMANDS = 200
"""A longer script is asked about (R-SHELL-6)."""


@dataclass(frozen=True)
class Word:
    """One word. `literal`: bash passes on exactly `text`; else `text` holds the source of what bash expands."""

    text: str
    literal: bool
    is_stream: bool = False
    """It has a process substitution: a file that commands write while it is read."""


_GIT_OPTIONS_WITH_VALUE = frozenset(
    {"-c", "-C", "--git-dir", "--work-tree", "--namespace", "--config-env", "--super-prefix", "--attr-source"}
)


def verb_index(rest: Sequence[str]) -> int:
    """Where git's verb stands in the words behind `git`; their number if there is none."""
    index = 0
    while index < len(rest) and rest[index].startswith("-"):
        index += 2 if rest[index] in _GIT_OPTIONS_WITH_VALUE else 1
    return min(index, len(rest))


def without_global_options(words: Words) -> Words:
    return (words[0], *words[1 + verb_index(words[1:]) :])


def names(text: str) -> frozenset[str]:
    """The names in a text that lists them with blanks between, as most tables of options are written."""
    return frozenset(text.split())
