"""The table of `git diff --stat` and `git log --stat`: each file with how many lines changed, without the graph."""

from __future__ import annotations

import re
from collections.abc import Sequence

from goat_mcp.commands.compression.compressed import Compressed

_FILE = re.compile(r" (?P<file>\S(?:.*\S)?) +\| +(?P<count>\d+)(?: [+-]+)?")
_KEPT = re.compile(r" .+ \| +Bin .*| \d+ files? changed.*| (?:create|delete) mode .+| mode change .+| rename .+")


def stat_line(line: str) -> str | None:
    """What is left of a line of the table; None: it is none."""
    if found := _FILE.fullmatch(line):
        return f" {found['file']} | {found['count']}"
    return line if _KEPT.fullmatch(line) else None


def take_stat(lines: Sequence[str]) -> Compressed:
    kept: list[str] = []
    for line in lines:
        shown = stat_line(line)
        if shown is None:
            break
        kept.append(shown)
    return Compressed(tuple(kept), len(kept))
