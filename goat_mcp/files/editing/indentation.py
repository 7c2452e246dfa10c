"""From the indentation a model typed to the file's own: tabs or spaces, and how wide a level is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

BLANKS = " \t"
_WIDTHS = (2, 3, 4, 8)
"""Columns an indentation level may plausibly have."""
_USUAL_WIDTH = 4


def indent_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip(BLANKS))]


@dataclass(frozen=True)
class IndentPair:
    """How one line is indented in the file, and how the model typed it."""

    in_file: str
    typed: str


@dataclass(frozen=True)
class Indentation:
    """Typed blanks as the file has them: each `step` columns typed are one `unit`.

    `unit` is None where typed blanks go into the file as they are. `tab_columns` is what a typed tab counts.
    """

    unit: str | None = None
    step: int = 1
    tab_columns: int = 1

    def moved(self, base: IndentPair, typed: str) -> str:
        """The file's indentation for a line typed with `typed`: that of `base` plus what was typed more or less."""
        if typed == base.typed:
            return base.in_file
        if self.unit is None and typed.startswith(base.typed):
            return base.in_file + typed[len(base.typed) :]
        change = _columns(typed, self.tab_columns) - _columns(base.typed, self.tab_columns)
        levels, rest = divmod(abs(change), self.step)
        unit = " " if self.unit is None else self.unit
        spaces = rest if unit == "\t" else round(rest * len(unit) / self.step)
        if change >= 0:
            return base.in_file + unit * levels + " " * spaces
        if unit == "\t" and levels:
            tabs = base.in_file.rstrip(" ")
            return tabs[: max(0, len(tabs) - levels)]
        return base.in_file[: max(0, len(base.in_file) - levels * len(unit) - spaces)]


def learn(pairs: Sequence[IndentPair], typed: Sequence[str], nearby: Iterable[str]) -> Indentation:
    """What the lines that matched say about both sides, or else the lines `nearby` in the file.

    `pairs` and `typed` (all typed indentations) leave out blank lines.
    """
    near = [indent for indent in map(indent_of, nearby) if indent]
    file_blank = _most_used([pair.in_file for pair in pairs]) or _most_used(near)
    if file_blank is None or not any(typed):
        return Indentation()
    by_tabs = all(set(indent) <= {"\t"} for indent in typed)
    tab_columns = 1 if by_tabs else _USUAL_WIDTH
    columns = [_columns(indent, tab_columns) for indent in typed]
    sizes = [(_columns(pair.typed, tab_columns), _size(pair.in_file, file_blank)) for pair in pairs]
    ratio = _common_ratio(sizes)
    if file_blank == "\t":
        return Indentation() if by_tabs else Indentation("\t", _columns_per_tab(ratio, sizes, columns), tab_columns)
    if by_tabs:
        return Indentation(" " * _spaces_per_tab(ratio, sizes, near), 1, tab_columns)
    if ratio is not None and ratio[0] != ratio[1] and {*ratio} <= {*_WIDTHS}:
        return Indentation(" " * ratio[1], ratio[0], tab_columns)
    if any("\t" in indent for indent in typed):
        return Indentation(" ", 1, tab_columns)
    return Indentation()


def _columns_per_tab(ratio: tuple[int, int] | None, sizes: list[tuple[int, int]], typed: list[int]) -> int:
    if ratio is not None and ratio[0] % ratio[1] == 0:
        return ratio[0] // ratio[1]
    steps = Counter(step for before, after in pairwise(typed) if (step := abs(after - before)) in _WIDTHS)
    if steps:
        return min(steps, key=lambda step: (-steps[step], step))
    for columns, tabs in sizes:
        if tabs and columns % tabs == 0 and columns // tabs in _WIDTHS:
            return columns // tabs
    return _USUAL_WIDTH


def _spaces_per_tab(ratio: tuple[int, int] | None, sizes: list[tuple[int, int]], near: list[str]) -> int:
    if ratio is not None and ratio[1] % ratio[0] == 0:
        return ratio[1] // ratio[0]
    for tabs, spaces in sizes:
        if tabs and spaces % tabs == 0 and spaces // tabs in _WIDTHS:
            return spaces // tabs
    steps = [after - before for before, after in pairwise(sorted({0, *map(len, near)}))]
    step = min(steps, default=_USUAL_WIDTH)
    return step if step in _WIDTHS else _USUAL_WIDTH


def _common_ratio(sizes: list[tuple[int, int]]) -> tuple[int, int] | None:
    """How many columns typed are how many in the file, told by lines of different depth; None if they disagree."""
    changes = [
        (abs(typed - typed_before), abs(found - found_before))
        for (typed_before, found_before), (typed, found) in pairwise(sizes)
        if (typed - typed_before) * (found - found_before) > 0
    ]
    if not changes:
        return None
    typed, found = min(changes)
    return (typed, found) if all(one * found == two * typed for one, two in changes) else None


def _most_used(indents: Sequence[str]) -> str | None:
    """What most of them begin with; None where nothing is indented."""
    tabs = sum(indent.startswith("\t") for indent in indents)
    spaces = sum(indent.startswith(" ") for indent in indents)
    if not tabs and not spaces:
        return None
    return "\t" if tabs >= spaces else " "


def _columns(indent: str, tab_columns: int) -> int:
    return len(indent) + indent.count("\t") * (tab_columns - 1)


def _size(indent: str, blank: str) -> int:
    """In tabs for a file that indents by tabs, else in columns."""
    return indent.count("\t") if blank == "\t" else _columns(indent, _USUAL_WIDTH)
