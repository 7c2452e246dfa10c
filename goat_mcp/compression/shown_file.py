"""`cat`, `head`, `tail`: runs of equal lines once, empty lines left out, and the numbers that then tell what was where.

A line that stays is whole. Most source code comes out no shorter, and then it stays as it was printed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from goat_mcp.compression.pressed import Pressed
from goat_mcp.shell.names import Words

_FROM_LINE = re.compile(r"(?:-n|--lines=)?\+(?P<first>\d+)")


def press_shown_file(words: Words, lines: Sequence[str]) -> Pressed | None:
    first = _first_line(words)
    kept = [
        f"{_numbers(first + start, first + end)}\t{line}" if first else _counted(line, end - start + 1)
        for start, end, line in _runs(lines)
        if line.strip()
    ]
    return Pressed(tuple(kept), len(lines))


def _runs(lines: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Equal lines that follow each other: index of the first and the last, and the line."""
    start = 0
    for at in range(1, len(lines) + 1):
        if at == len(lines) or lines[at] != lines[start]:
            yield start, at - 1, lines[start]
            start = at


def _numbers(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def _counted(line: str, times: int) -> str:
    return line if times == 1 else f"{line}  (x{times})"


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
