"""Putting the new text in the place of the old: the file's line ends, indentation, and bytes of what is unchanged.

Source: goa, "auto-reindent"; contract: tools.md, Edit and "Bytes".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

from goat_mcp.files.documents.line_ends import common_ends

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

    `unit` is None if typed blanks go into the file as they are. `tab_columns` is what a typed tab counts.
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


def learn_indentation(pairs: Sequence[IndentPair], typed: Sequence[str], nearby: Iterable[str]) -> Indentation:
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
    """How many columns typed are how many in the file, by lines of different depth; None if they disagree."""
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
    """What most of them begin with; None if nothing is indented."""
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


MAX_COMPARED_CHARS = 2_000
"""Characters of a line up to which single characters of the file (a curly quote) are kept in it."""
_AUTOJUNK_LINES = 500


@dataclass(frozen=True)
class MatchPosition:
    """Where new text goes: the file's lines, as many as the old text has, and what surrounds them.

    `line_end` is the terminator of added lines that have no line before them; None: as they were typed.
    """

    file_lines: Sequence[str]
    old_lines: Sequence[str]
    line_end: str | None
    nearby: Sequence[str] = ()


def replacement_text(place: MatchPosition, new_lines: Sequence[str], *, reindent: bool) -> str:
    """The new text as the file would have it. Lines come with their terminators.

    A line the old text has as well keeps the file's bytes. Any other line keeps the terminator of the line it
    replaces or follows and, with `reindent`, takes its indentation plus what was typed more or less.
    """
    return "".join(_Adaptation(place, new_lines, reindent).lines())


class _Adaptation:
    def __init__(self, place: MatchPosition, new_lines: Sequence[str], reindent: bool) -> None:
        self._place = place
        self._file = [_split(line) for line in place.file_lines]
        self._old = [_split(line) for line in place.old_lines]
        self._new = [_split(line) for line in new_lines]
        self._partner = _partners([text for text, _ in self._old], [text for text, _ in self._new])
        self._indentation = self._learn() if reindent else None

    def lines(self) -> list[str]:
        before = self._base_of_first()
        end_before = ""
        lines: list[str] = []
        for index, (text, end) in enumerate(self._new):
            partner = self._partner[index]
            fitted = self._text(text, partner, before)
            fitted_end = self._end(end, partner, end_before)
            if not fitted and fitted_end == "\n" and lines and lines[-1].endswith("\r"):
                fitted_end = "\r\n"  # a single one would make both one line end
            lines.append(fitted + fitted_end)
            if not self._is_literal(end):
                end_before = fitted_end
            if text.strip(BLANKS):
                before = IndentPair(indent_of(fitted), indent_of(text))
        if lines and self._old[-1][1] and not self._file[-1][1]:
            lines[-1] = _split(lines[-1])[0]  # the file ends here without a line end, and stays so
        return lines

    def _text(self, text: str, partner: int | None, before: IndentPair) -> str:
        if partner is not None and self._old[partner][0] == text:
            return self._file[partner][0]
        if self._indentation is None or not text.strip(BLANKS):
            return text
        body = text.lstrip(BLANKS)
        if partner is None or not self._old[partner][0].strip(BLANKS):
            return self._indentation.moved(before, indent_of(text)) + body
        file_text, old_text = self._file[partner][0], self._old[partner][0]
        indent = self._indentation.moved(IndentPair(indent_of(file_text), indent_of(old_text)), indent_of(text))
        return indent + _keep_characters(file_text.strip(BLANKS), old_text.strip(BLANKS), body)

    def _end(self, typed: str, partner: int | None, end_before: str) -> str:
        if not typed or self._is_literal(typed):
            return typed
        if partner is not None and self._file[partner][1]:
            return self._file[partner][1]
        return end_before or self._place.line_end or typed

    def _is_literal(self, end: str) -> bool:
        """A single CR is data, unless the old text has single CRs for line ends too."""
        return end == "\r" and self._place.line_end != "\r" and all(end != "\r" for _, end in self._old)

    def _base_of_first(self) -> IndentPair:
        """What lines added at the top go by: the first line further down that has a place, or the old text's first."""
        for index, partner in enumerate(self._partner):
            text = self._new[index][0]
            if partner is not None and text.strip(BLANKS) and self._old[partner][0].strip(BLANKS):
                own = IndentPair(indent_of(self._file[partner][0]), indent_of(self._old[partner][0]))
                if self._indentation is None:
                    return own
                return IndentPair(self._indentation.moved(own, indent_of(text)), indent_of(text))
        return next(iter(self._pairs()), IndentPair("", ""))

    def _pairs(self) -> list[IndentPair]:
        return [
            IndentPair(indent_of(in_file), indent_of(typed))
            for (in_file, _), (typed, _) in zip(self._file, self._old, strict=True)
            if typed.strip(BLANKS)
        ]

    def _learn(self) -> Indentation:
        typed = [indent_of(text) for text, _ in (*self._old, *self._new) if text.strip(BLANKS)]
        return learn_indentation(self._pairs(), typed, self._place.nearby)


def _partners(old: Sequence[str], new: Sequence[str]) -> list[int | None]:
    """For each new line the old one it is, or replaces: the same lines first, then those with the same text."""
    partners: list[int | None] = [None] * len(new)

    def pair(old_lines: range, new_lines: range) -> None:
        for old_index, new_index in zip(old_lines, new_lines, strict=False):
            partners[new_index] = old_index

    for old_run, new_run, is_same in _aligned(old, new):
        if is_same:
            pair(old_run, new_run)
            continue
        bodies = [[lines[index].strip(BLANKS) for index in run] for lines, run in ((old, old_run), (new, new_run))]
        for old_part, new_part, _ in _aligned(*bodies):
            pair(old_run[old_part.start : old_part.stop], new_run[new_part.start : new_part.stop])
    return partners


def _aligned(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[range, range, bool]]:
    """Runs of both, in order, and whether they are the same. What both begin and end with alike comes first."""
    head, tail = common_ends(old, new)
    old_end, new_end = len(old) - tail, len(new) - tail
    yield range(head), range(head), True
    middle = SequenceMatcher(None, old[head:old_end], new[head:new_end], len(old) > _AUTOJUNK_LINES)
    for tag, old_start, old_stop, new_start, new_stop in middle.get_opcodes():
        old_run, new_run = range(head + old_start, head + old_stop), range(head + new_start, head + new_stop)
        yield old_run, new_run, tag == "equal"
    yield range(old_end, len(old)), range(new_end, len(new)), True


def _keep_characters(in_file: str, typed: str, new: str) -> str:
    """`new`, but with the file's own characters (a curly quote for a straight one) where it agrees with `typed`."""
    if in_file == typed or len(in_file) != len(typed) or len(typed) + len(new) > MAX_COMPARED_CHARS:
        return new
    pieces: list[str] = []
    for tag, start, end, new_start, new_end in SequenceMatcher(None, typed, new, autojunk=False).get_opcodes():
        pieces.append(in_file[start:end] if tag == "equal" else new[new_start:new_end])
    return "".join(pieces)


def _split(line: str) -> tuple[str, str]:
    """A line's text and its terminator."""
    text = line.rstrip("\r\n")
    return text, line[len(text) :]
