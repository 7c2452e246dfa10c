"""`echo`: its words, which agents put between the output of one program and the next."""

from __future__ import annotations

from collections.abc import Sequence

from goat_mcp.commands.compression.compressed import Compressed
from goat_mcp.commands.shell.names import Words


def echo_line(words: Words) -> str | None:
    """The one line that an `echo` prints; None where that takes more than reading it."""
    if words[1:2] and words[1].startswith("-") and set(words[1][1:]) <= set("neE") and words[1] != "-":
        return None
    line = " ".join(words[1:])
    return None if "\n" in line else line


def press_echo(words: Words, lines: Sequence[str]) -> Compressed | None:
    line = echo_line(words)
    if line is None or not lines or lines[0] != line:
        return None
    return Compressed((line,) if line else (), 1)
