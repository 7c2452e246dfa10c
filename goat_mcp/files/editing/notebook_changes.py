"""Replacing, inserting and deleting a cell: which piece of a notebook's text becomes which. No file is touched here."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.documents.notebook import position_name, shown_cell_id
from goat_mcp.files.editing.cell_members import CellMembers
from goat_mcp.files.editing.json_spans import Item, value_at
from goat_mcp.files.editing.notebook_cells import NotebookCells
from goat_mcp.files.editing.notebook_layout import Blanks, Layout, blank_after_comma, indent_of, layout_at

CellType = Literal["code", "markdown"]


@dataclass(frozen=True)
class CellChange:
    """`text[start:end]` of the notebook is to become `new`. The rest says what that does, and to which cell."""

    start: int
    end: int
    new: str
    cell_id: str
    index: int
    cell_type: str
    total_cells: int
    """How many there are afterwards."""
    notices: tuple[str, ...] = ()


def replace_cell(
    notebook: NotebookCells, index: int, source: str, cell_type: CellType | None, *, utf: bool
) -> CellChange:
    """Give a cell another source and perhaps another type. Raises `ToolError(CELL)` if it cannot be of that type."""
    item = notebook.items[index]
    if item.fields is None:
        raise ToolError(
            ErrorCode.CELL,
            f"cell {notebook.shown_ids[index]} of {notebook.path} is no object, so it has no source",
            "Delete it, or insert another cell after it.",
        )
    layout = layout_at(notebook, index, utf=utf)
    members = CellMembers(notebook.text, item.fields)
    _set_source(members, layout, source)
    old_type = notebook.string_of(item, "cell_type")
    new_type = cell_type or old_type or "untyped"
    notices: list[str] = []
    if cell_type is not None and cell_type != old_type:
        notices = [f"the cell was {old_type or 'untyped'} before", *_change_type(members, layout, cell_type)]
        _check_still_valid(notebook, item, old_type, members.text, cell_type)
    elif new_type == "code" and _clear_outputs(members):
        notices = ["its outputs were cleared"]
    new = members.text
    return CellChange(
        item.start,
        item.end,
        new,
        notebook.shown_ids[index],
        index,
        new_type,
        len(notebook.items),
        tuple(notices),
    )


def insert_cell(
    notebook: NotebookCells, after: int | None, source: str, cell_type: CellType, *, utf: bool
) -> CellChange:
    """Put in a new cell behind the one at `after`, or before all others."""
    layout = layout_at(notebook, after, utf=utf)
    fields = _new_cell(notebook, source, cell_type)
    cell = layout.cell(fields)
    items = notebook.items
    index = 0 if after is None else after + 1
    if not items:
        blanks = _blanks_of_first_cell(notebook)
        start, end = notebook.cells.start + 1, notebook.cells.end - 1
        new = blanks.open + cell + blanks.close
    elif after is None:
        start = end = items[0].start
        new = f"{cell},{_between(notebook, 1)}"
    else:
        start = end = items[after].end
        new = f",{_between(notebook, after + 1)}{cell}"
    return CellChange(
        start,
        end,
        new,
        shown_cell_id(fields.get("id"), index),
        index,
        cell_type,
        len(items) + 1,
        _renumbered(notebook, index, +1),
    )


def delete_cell(notebook: NotebookCells, index: int) -> CellChange:
    """Take out a cell with one of the commas beside it."""
    items = notebook.items
    item = items[index]
    if index + 1 < len(items):
        start, end = item.start, items[index + 1].start
    elif index:
        start, end = items[index - 1].end, item.end
    else:
        start, end = item.lead, item.after
    return CellChange(
        start,
        end,
        "",
        notebook.shown_ids[index],
        index,
        notebook.string_of(item, "cell_type") or "untyped",
        len(items) - 1,
        _renumbered(notebook, index + 1, -1),
    )


def _joined(source: str) -> str | None:
    """The text that a source's JSON means; None for what is no text."""
    value: Any = value_at(source, 0)[0]
    if isinstance(value, list):
        lines = cast("list[Any]", value)
        return "".join(lines) if all(isinstance(line, str) for line in lines) else None
    return value if source[0] == '"' else None


def _set_source(members: CellMembers, layout: Layout, source: str) -> None:
    """A source of the same text stays as it is, whatever its lines."""
    old = members.get("source")
    if old is None:
        _add(members, layout, "source", layout.source(source))
    elif _joined(old) != source:
        members.set("source", layout.source(source))


def _add(members: CellMembers, layout: Layout, key: str, value: str) -> None:
    members.add(key, layout.value(key) + layout.colon, value, layout.fields.between)


def _change_type(members: CellMembers, layout: Layout, new_type: CellType) -> list[str]:
    """Make the members those of another type. What had to go, in words."""
    if members.get("cell_type") is None:
        _add(members, layout, "cell_type", layout.value(new_type))
    else:
        members.set("cell_type", layout.value(new_type))
    if new_type == "markdown":
        had_outputs = _has_outputs(members)
        members.drop("outputs")
        members.drop("execution_count")
        return ["its outputs are gone"] if had_outputs else []
    _clear_outputs(members)
    for key, value in (("execution_count", "null"), ("outputs", "[]")):
        if members.get(key) is None:
            _add(members, layout, key, value)
    return ["its attachments are gone: a code cell cannot hold them"] if members.drop("attachments") else []


def _clear_outputs(members: CellMembers) -> bool:
    """Whether there were any."""
    had_outputs = _has_outputs(members)
    if had_outputs:
        members.set("outputs", "[]")
    if members.get("execution_count") != "null":
        members.set("execution_count", "null")
    return had_outputs


def _has_outputs(members: CellMembers) -> bool:
    outputs = members.get("outputs")
    return outputs is not None and (outputs[0] != "[" or outputs[1:-1].strip() != "")


def _check_still_valid(notebook: NotebookCells, item: Item, old_type: str | None, new: str, new_type: str) -> None:
    """A cell that was as nbformat wants it must stay so; what its metadata may hold depends on the type.

    Raises `ToolError(CELL)`.
    """
    from nbformat.validator import NotebookValidationError, validate

    def problem_of(cell: str, kind: str) -> str | None:
        # Numbers as floats: no limit of digits applies.
        fields: Any = json.loads(cell, parse_int=float)
        try:
            validate(fields, ref=f"{kind}_cell", version=4, version_minor=notebook.minor)
        except NotebookValidationError as problem:
            return str(problem).splitlines()[0]
        return None

    if old_type not in ("code", "markdown", "raw") or problem_of(notebook.text[item.start : item.end], old_type):
        return
    if (problem := problem_of(new, new_type)) is not None:
        raise ToolError(
            ErrorCode.CELL,
            f"the {old_type} cell cannot become a {new_type} cell of a valid notebook: {problem}; nothing was written",
            f"Insert a new {new_type} cell and delete this one.",
        )


def _new_cell(notebook: NotebookCells, source: str, cell_type: CellType) -> Mapping[str, Any]:
    """The members of a new cell, sorted as nbformat sorts them."""
    from nbformat import v4

    make = cast("Callable[[str], dict[str, Any]]", getattr(v4, f"new_{cell_type}_cell"))
    fields = dict(make(source))
    while fields["id"] in notebook.shown_ids:
        fields = dict(make(source))
    if not notebook.has_ids:
        del fields["id"]
    return dict(sorted(fields.items()))


def _blanks_of_first_cell(notebook: NotebookCells) -> Blanks:
    text, root = notebook.text, notebook.root
    cells = root.last("cells")
    outer = None if cells is None else indent_of(text[cells.lead : cells.start])
    if outer is None:
        return Blanks()
    line_end, unit = outer
    return Blanks(line_end + unit * 2, "", line_end + unit)


def _between(notebook: NotebookCells, index: int) -> str:
    """What stands between the comma before a cell at `index` and the cell."""
    items, text = notebook.items, notebook.text
    if len(items) > 1:
        item = items[min(index, len(items) - 1)]
        return text[item.lead : item.start]
    only = text[items[0].lead : items[0].start]
    return only if indent_of(only) else blank_after_comma(text, notebook.root)


def _renumbered(notebook: NotebookCells, first: int, by: int) -> tuple[str, ...]:
    """Cells without an id go by their place: whoever knows it must hear that from `first` on it is another now."""
    moved = next((index for index in range(first, len(notebook.items)) if notebook.real_ids[index] is None), None)
    if moved is None:
        return ()
    was, now = position_name(moved), position_name(moved + by)
    return (f"the cells behind it go by other places now: {was} is {now}, and so on",)
