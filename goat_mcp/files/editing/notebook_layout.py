"""How a notebook is written down (blanks, sources as lines or whole, escapes), and JSON text in that manner."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from goat_mcp.files.documents.line_ends import split_lines
from goat_mcp.files.editing.json_spans import Item, JsonObject, skip_blanks, value_at
from goat_mcp.files.editing.notebook_cells import NotebookCells

_INDENT = re.compile(r"(\r\n|\n|\r)([ \t]*)\Z")
_ESCAPED = re.compile(r"(?<!\\)(?:\\\\)*\\u(?!00[0-7])[0-9A-Fa-f]{4}")
"""A character beyond ASCII, written as its number."""


@dataclass(frozen=True, slots=True)
class Blanks:
    """What stands between the brackets and items of a list or object, commas not counted."""

    open: str = ""
    between: str = ""
    close: str = ""

    def joined(self, items: Sequence[str]) -> str:
        return self.open + f",{self.between}".join(items) + self.close


@dataclass(frozen=True, slots=True)
class Layout:
    """The manner of one place in a notebook: `fields` of a cell's members, `lines` of its source as a list."""

    fields: Blanks
    lines: Blanks
    colon: str
    as_lines: bool
    ascii_only: bool

    def source(self, source: str) -> str:
        if not self.as_lines:
            return self.value(source)
        if not source:
            return "[]"
        return f"[{self.lines.joined([self.value(line) for line in split_lines(source)])}]"

    def value(self, value: Any) -> str:
        return json.dumps(value, ensure_ascii=self.ascii_only)

    def cell(self, fields: Mapping[str, Any]) -> str:
        members = [
            self.value(key) + self.colon + (self.source(value) if key == "source" else self.value(value))
            for key, value in fields.items()
        ]
        return f"{{{self.fields.joined(members)}}}"


def layout_at(notebook: NotebookCells, near: int | None, *, utf: bool) -> Layout:
    """The manner of the cell at `near`; what cannot be seen there is taken from the cells before, then from all.

    `utf`: the file can hold any character as it is.
    """
    text = notebook.text
    cells = [item.fields for item in _nearest_first(notebook, near) if item.fields is not None and item.fields.members]
    comma = blank_after_comma(text, notebook.root)
    fields = next((_fields(text, cell, comma) for cell in cells), None)
    colons = (text[member.key_end : member.value_start] for cell in (*cells, notebook.root) for member in cell.members)
    colon = next(colons, ": ")
    if fields is None:
        fields = _fields_by_root(notebook)
    sources = [(source.value_start, source.end) for cell in cells if (source := cell.last("source")) is not None]
    kinds = [text[start] for start, _ in sources if text[start] in '["']
    lists = (_list(text, start, end, comma) for start, end in sources if text[start] == "[")
    lines = next((blanks for blanks in lists if blanks is not None), None)
    return Layout(
        fields,
        lines or _one_deeper(notebook, fields),
        colon,
        as_lines=not kinds or kinds[0] == "[",
        ascii_only=not utf or _escapes(notebook, near),
    )


def indent_of(blanks: str) -> tuple[str, str] | None:
    """The line end and the indentation that blanks end with; None where they stay in their line."""
    match = _INDENT.search(blanks)
    return None if match is None else (match[1], match[2])


def blank_after_comma(text: str, root: JsonObject) -> str:
    """What follows a comma where a list goes on in the same line."""
    for member in root.members[1:]:
        if indent_of(text[member.lead : member.start]) is None:
            return text[member.lead : member.start]
    return " " if text[root.members[0].value_start - 1] != ":" else ""


def _nearest_first(notebook: NotebookCells, near: int | None) -> Iterable[Item]:
    items = notebook.items
    yield from reversed(items[: 0 if near is None else near + 1])
    yield from items[0 if near is None else near + 1 :]


def _fields(text: str, cell: JsonObject, comma_blank: str) -> Blanks:
    first, last = cell.members[0], cell.members[-1]
    opening = text[first.lead : first.start]
    if len(cell.members) > 1:
        between = text[cell.members[1].lead : cell.members[1].start]
    else:
        between = opening if indent_of(opening) else comma_blank
    return Blanks(opening, between, text[last.end : last.after])


def _list(text: str, start: int, end: int, comma_blank: str) -> Blanks | None:
    """The blanks of a list that ends at `end`; None where it is empty."""
    first = skip_blanks(text, start + 1)
    if text[first] == "]":
        return None
    opening = text[start + 1 : first]
    comma = skip_blanks(text, value_at(text, first)[1])
    if text[comma] == ",":
        between = text[comma + 1 : skip_blanks(text, comma + 1)]
    else:
        between = opening if indent_of(opening) else comma_blank
    last = end - 1
    while text[last - 1] in " \t\n\r":
        last -= 1
    return Blanks(opening, between, text[last : end - 1])


def _fields_by_root(notebook: NotebookCells) -> Blanks:
    """For a notebook without cells: a cell lies two levels below the root, its members three."""
    text, root = notebook.text, notebook.root
    outer = indent_of(text[root.members[0].lead : root.members[0].start])
    if outer is None:
        return Blanks("", blank_after_comma(text, root), "")
    line_end, unit = outer
    return Blanks(line_end + unit * 3, line_end + unit * 3, line_end + unit * 2)


def _one_deeper(notebook: NotebookCells, fields: Blanks) -> Blanks:
    """For a notebook whose sources show no list with lines: one level below a cell's members."""
    inner, outer = indent_of(fields.open), indent_of(fields.close)
    if inner is None:
        return Blanks("", blank_after_comma(notebook.text, notebook.root), "")
    unit = inner[1].removeprefix(outer[1]) if outer is not None else inner[1]
    return Blanks(fields.open + unit, fields.open + unit, fields.open)


def _escapes(notebook: NotebookCells, near: int | None) -> bool:
    """Whether characters beyond ASCII are written as numbers: in the cell, else in the whole notebook."""
    parts = [notebook.text]
    if near is not None:
        item = notebook.items[near]
        parts.insert(0, notebook.text[item.start : item.end])
    for part in parts:
        if not part.isascii():
            return False
        if _ESCAPED.search(part):
            return True
    return False
