"""What a compressor is, and the lines that each of them keeps because they name a failure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from goat_mcp.commands.shell.words import Words


@dataclass(frozen=True, slots=True)
class Compressed:
    """The shorter form of the first `taken` lines. The lines after them are not this program's.

    `is_numbered`: it is worth showing for the numbers of its lines, even if it is not shorter.
    """

    lines: tuple[str, ...]
    taken: int
    is_numbered: bool = False


Compressor = Callable[[Words, Sequence[str]], Compressed | None]
"""Takes a command's words and the lines from its first one on. Returns None if the program does not print like that."""


_FAILURE = re.compile(
    r"\b(?:fail(?:s|ed|ure|ures|ing)?|err(?:or|ors|ored)?|fatal|panic(?:ked)?|exceptions?|traceback|abort(?:ed|ing)?|"
    r"segfault|segmentation fault|core dumped|killed|timed out|timeout|not ok|cannot|denied|undefined|interrupted)\b"
    r"|[A-Za-z](?:Error|Exception)\b|^E {2}|[✕✗✖\u00d7●\u2a2f]",
    re.IGNORECASE,
)


def names_a_failure(line: str) -> bool:
    return _FAILURE.search(line) is not None
