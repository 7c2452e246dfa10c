"""`cat`, `head`, `tail`: runs of equal lines once, with the numbers that tell what was where, and without empty lines.

A line that stays is whole. Where numbers are not known (several files, a pipe), only repeated lines go. Most source
code comes out no shorter, and then it stays as it was printed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from goat_mcp.commands.compression.compressed import Compressed
from goat_mcp.commands.shell.names import Words

_LEAST_REPEATED = 3
_FROM_LINE = re.compile(r"(?:-n|--lines=)?\+(?P<first>\d+)")


def press_shown_file(words: Words, lines: Sequence[str]) -> Compressed | None:
    first = _first_line(words)
    kept: list[str] = []
    for start, end, line in _runs(lines):
        if first:
            kept.extend([f"{_numbers(first + start, first + end)}\t{line}"] if line.strip() else [])
        elif end - start < _LEAST_REPEATED:
            kept.extend(lines[start : end + 1])  # without numbers an empty line must not go: it is part of the text
        else:
            kept.extend((line, f"[this line {end - start} times more]"))
    return Compressed(tuple(kept), len(lines))


def _runs(lines: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Equal lines that follow each other: index of the first and the last, and the line."""
    start = 0
    for at in range(1, len(lines) + 1):
        if at == len(lines) or lines[at] != lines[start]:
            yield start, at - 1, lines[start]
            start = at


def _numbers(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def _first_line(words: Words) -> int:
    """The number of the first line shown; 0 where that is not known, as of the end of a file or of several files."""
    rest = list(words[1:])
    first = 1
    if words[0] == "tail":
        from_line = next((found for word in rest if (found := _FROM_LINE.fullmatch(word))), None)
        if from_line is None:
            return 0
        first = int(from_line["first"])
    files = [word for word in rest if not word.startswith(("-", "+"))]
    if words[0] != "cat" and ("-n" in rest[:-1] or "-c" in rest[:-1]):
        at = rest.index("-n") if "-n" in rest else rest.index("-c")
        files = [word for word in files if word != rest[at + 1]]
    plain = words[0] != "cat" or len(files) == len(rest)
    return first if len(files) == 1 and plain and not set("*?[{$`") & set(files[0]) else 0
