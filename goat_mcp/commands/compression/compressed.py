"""What a compressor is: the one type behind every file here that knows a program's output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from goat_mcp.commands.shell.names import Words


@dataclass(frozen=True, slots=True)
class Compressed:
    """What became of the first `taken` lines of those a compressor was shown; the rest is not this program's."""

    lines: tuple[str, ...]
    taken: int


Compressor = Callable[[Words, Sequence[str]], Compressed | None]
"""Takes a command's words and what was printed from there on. None: this is not how the program prints."""
