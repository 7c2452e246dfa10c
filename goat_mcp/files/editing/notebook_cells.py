"""The cells of a notebook: which one an id means, and replacing, inserting and deleting one. No file is touched here.

The notebook is written again as JSON with the indentation, line ends and final newline it had. nbformat, which makes
new cells and checks changed ones, is slow to import: that happens when it is first needed.
"""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from goat_mcp.core.errors import ErrorCode, ToolError, cut_middle
from goat_mcp.files.documents.line_ends import split_lines
from goat_mcp.files.documents.notebook import position_name, shown_cell_id

CellType = Literal["code", "markdown"]
Json = dict[str, Any]

FIRST_MINOR_WITH_IDS = 5
_POSITION = re.compile(r"cell-(\d{1,9})")
_OPENING = re.compile(r'\s*\{(?:(\r\n|\n|\r)([ \t]*))?\s*"(?:[^"\\]|\\.)*"\s*:( ?)')
"""The line end, the indentation and the blank after a colon."""
_ESCAPED = re.compile(r"(?<!\\)(?:\\\\)*\\u(?!00[0-7])[0-9A-Fa-f]{4}")
"""A character beyond ASCII, written as its number."""
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")
_MAX_IDS_NAMED = 40
_MAX_ID_CHARS = 64
"""No valid id is longer."""


@dataclass(frozen=True)
class CellPosition:
    """`by_position`: the caller counted cells, so it matters whether they know the present order."""

    index: int
    by_position: bool


@dataclass(frozen=True)
class CellChange:
    """What a change did, and to which cell. `total_cells` is how many there are afterwards."""

    cell_id: str
    index: int
    cell_type: str
    total_cells: int
    notices: tuple[str, ...] = ()
    is_change: bool = True


class Notebook:
    """A notebook of nbformat 4. `path` is the file in the caller's words."""

    def __init__(self, text: str, path: str) -> None:
        """Raises `ToolError(NOTEBOOK)` for what is no JSON, no notebook or not of nbformat 4."""
        self._path = path
        self._old_text = text
        self._tree = _parsed(text, path)
        self.cells = cast("list[Any]", self._tree["cells"])
        minor = self._tree.get("nbformat_minor")
        self._minor = minor if isinstance(minor, int) else 0

    @property
    def _real_ids(self) -> list[str | None]:
        return [_string(cell, "id") or None for cell in self.cells]

    @property
    def _shown_ids(self) -> list[str]:
        """The ids as Read shows them: a cell without one is named by its position."""
        return [shown_cell_id(real, index) for index, real in enumerate(self._real_ids)]

    def find(self, cell_id: str) -> CellPosition:
        """The cell meant: by its own id, else, for `cell-N`, by its position from 0.

        Raises `ToolError`: CELL, AMBIGUOUS.
        """
        real_ids = self._real_ids
        for ids in (real_ids, self._shown_ids):
            indexes = [index for index, known in enumerate(ids) if known == cell_id]
            if len(indexes) > 1:
                raise self._ambiguous(cell_id, indexes)
            if indexes:
                return CellPosition(indexes[0], by_position=real_ids[indexes[0]] is None)
        position = _POSITION.fullmatch(cell_id)
        if position is None or int(position[1]) >= len(self.cells):
            raise self._unknown(cell_id)
        return CellPosition(int(position[1]), by_position=True)

    def replace(self, index: int, source: str, cell_type: CellType | None) -> CellChange:
        """Give a cell another source and perhaps another type. Raises `ToolError(CELL)` if it cannot be of that
        type."""
        cell_id, old = self._shown_ids[index], self.cells[index]
        if not isinstance(old, dict):
            raise ToolError(
                ErrorCode.CELL,
                f"cell {cell_id} of {self._path} is no object, so it has no source",
                "Delete it, or insert another cell after it.",
            )
        old = cast("Json", old)
        new = copy.copy(old)
        if _joined(old.get("source")) != source:
            new["source"] = self._source(source, index)
        old_type = _string(old, "cell_type")
        new_type = cell_type or old_type or "untyped"
        notices: list[str] = []
        if cell_type is not None and cell_type != old_type:
            notices = [f"the cell was {old_type or 'untyped'} before", *_change_type(new, cell_type)]
            self._check_still_valid(old, old_type, new, cell_type)
        elif new_type == "code" and _clear_outputs(new):
            notices = ["its outputs were cleared"]
        self.cells[index] = new
        return CellChange(cell_id, index, new_type, len(self.cells), tuple(notices), is_change=new != old)

    def insert(self, after: int | None, source: str, cell_type: CellType) -> CellChange:
        """Put in a new cell behind the one at `after`, or before all others."""
        from nbformat import v4

        make = cast("Callable[[], Json]", getattr(v4, f"new_{cell_type}_cell"))
        cell, taken = dict(make()), self._shown_ids
        while cell["id"] in taken:
            cell = dict(make())
        if self._minor < FIRST_MINOR_WITH_IDS:
            del cell["id"]
        cell["source"] = self._source(source, after)
        index = 0 if after is None else after + 1
        notices = self._renumbered(index, +1)
        self.cells.insert(index, dict(sorted(cell.items())))
        return CellChange(shown_cell_id(cell.get("id"), index), index, cell_type, len(self.cells), notices)

    def delete(self, index: int) -> CellChange:
        cell_id, notices = self._shown_ids[index], self._renumbered(index + 1, -1)
        cell_type = _string(self.cells.pop(index), "cell_type") or "untyped"
        return CellChange(cell_id, index, cell_type, len(self.cells), notices)

    def text(self, *, utf: bool) -> str:
        """The notebook as JSON, in the manner of its file. `utf`: the file can hold any character as it is.

        Raises `ToolError(NOTEBOOK)`.
        """
        old = self._old_text
        opening = _OPENING.match(old)
        line_end, indent, blank = opening.groups() if opening else (None, None, " ")
        separators = ("," if line_end or not blank else ", ", f":{blank}")
        escapes = old.isascii() and _ESCAPED.search(old) is not None

        def dumped(*, ascii_only: bool) -> str:
            return json.dumps(self._tree, ensure_ascii=ascii_only, indent=indent, separators=separators)

        try:
            text = dumped(ascii_only=escapes)
            if not escapes and not _is_unicode(text):
                text = dumped(ascii_only=True)
        except RecursionError:
            raise _no_notebook(self._path, "its JSON is nested too deeply") from None
        if not utf:
            known = set(old)
            text = _BEYOND_ASCII.sub(lambda char: char[0] if char[0] in known else json.dumps(char[0])[1:-1], text)
        end = old[len(old.rstrip(" \t\r\n")) :]
        return (text.replace("\n", line_end) if line_end else text) + end

    def _source(self, source: str, near: int | None) -> str | list[str]:
        """As a list of lines or whole, as the nearest cells before have it, else those after."""
        start = 0 if near is None else near + 1
        for cell in (*reversed(self.cells[:start]), *self.cells[start:]):
            known = cast("Json", cell).get("source") if isinstance(cell, dict) else None
            if isinstance(known, str):
                return source
            if isinstance(known, list):
                break
        return split_lines(source)

    def _check_still_valid(self, old: Json, old_type: str | None, new: Json, new_type: str) -> None:
        """A valid cell must stay valid: what its metadata may hold depends on the type. Raises `ToolError(CELL)`."""
        from nbformat.validator import NotebookValidationError, validate

        def problem_of(cell: Json, kind: str) -> str | None:
            try:
                validate(copy.deepcopy(cell), ref=f"{kind}_cell", version=4, version_minor=self._minor)
            except NotebookValidationError as problem:
                return str(problem).splitlines()[0]
            return None

        if old_type not in ("code", "markdown", "raw") or problem_of(old, old_type):
            return
        if (problem := problem_of(new, new_type)) is not None:
            raise ToolError(
                ErrorCode.CELL,
                f"the {old_type} cell cannot become a {new_type} cell of a valid notebook: {problem}; "
                "nothing was written",
                f"Insert a new {new_type} cell and delete this one.",
            )

    def _renumbered(self, first: int, by: int) -> tuple[str, ...]:
        """A notice that the positions of cells without an id change, from `first` on."""
        real_ids = self._real_ids
        moved = next((index for index in range(first, len(real_ids)) if real_ids[index] is None), None)
        if moved is None:
            return ()
        was, now = position_name(moved), position_name(moved + by)
        return (f"the cells behind it go by other places now: {was} is {now}, and so on",)

    def _ambiguous(self, cell_id: str, indexes: Sequence[int]) -> ToolError:
        positions = [position_name(index) for index in indexes]
        return ToolError(
            ErrorCode.AMBIGUOUS,
            f"{len(indexes)} cells of {self._path} have the id {cell_id!r}; nothing was written",
            f"Name one by its place: {', '.join(positions[:_MAX_IDS_NAMED])}.",
            facts={"cell_ids": positions},
        )

    def _unknown(self, cell_id: str) -> ToolError:
        shown_ids = self._shown_ids
        total = len(shown_ids)
        named = [cut_middle(known, _MAX_ID_CHARS) for known in shown_ids[:_MAX_IDS_NAMED]]
        more = f" and {total - len(named)} more" if total > len(named) else ""
        return ToolError(
            ErrorCode.CELL,
            f"no cell {cell_id!r} in {self._path}; nothing was written",
            f"Its cells: {', '.join(named)}{more}." if named else "It has no cells; insert one without cell_id.",
            facts={"cell_ids": named, "total_cells": total},
        )


def _parsed(text: str, path: str) -> Json:
    try:
        tree: Any = json.loads(text, parse_float=_finite)
    except ValueError as problem:
        raise ToolError(
            ErrorCode.NOTEBOOK,
            f"{path} is not valid JSON: {problem}; nothing was written",
            "Fix that place with Edit, then call again.",
        ) from None
    except RecursionError:
        raise _no_notebook(path, "its JSON is nested too deeply") from None
    if not isinstance(tree, dict):
        raise _no_notebook(path, "its JSON is no object")
    tree = cast("Json", tree)
    major = tree.get("nbformat", 3 if "worksheets" in tree and "cells" not in tree else 4)
    if major != 4:
        raise ToolError(
            ErrorCode.NOTEBOOK,
            f"{path} is a notebook of nbformat {major}; only nbformat 4 can be edited; nothing was written",
            "Convert it first: jupyter nbconvert --to notebook --nbformat 4 --inplace FILE, run by Bash."
            if major in (1, 2, 3)
            else "Change it with a program that knows this format.",
        )
    if not isinstance(tree.get("cells"), list):
        raise _no_notebook(path, "it has no list of cells")
    return tree


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"the number {digits[:40]} is too large to be written back")
    return number


def _no_notebook(path: str, why: str) -> ToolError:
    return ToolError(
        ErrorCode.NOTEBOOK,
        f"{path} is no Jupyter notebook: {why}; nothing was written",
        "NotebookEdit changes .ipynb files; use Edit for others.",
    )


def _string(cell: Any, key: str) -> str | None:
    value: Any = cast("Json", cell).get(key) if isinstance(cell, dict) else None
    return value if isinstance(value, str) else None


def _joined(source: Any) -> str | None:
    """The text of a source; None for what is no text."""
    if isinstance(source, list):
        lines = cast("list[Any]", source)
        return "".join(lines) if all(isinstance(line, str) for line in lines) else None
    return source if isinstance(source, str) else None


def _change_type(cell: Json, new_type: CellType) -> list[str]:
    """Make the members those of another type. Returns a notice for what had to go."""
    was_sorted = list(cell) == sorted(cell)
    cell["cell_type"] = new_type
    notices: list[str] = []
    if new_type == "markdown":
        if cell.pop("outputs", None):
            notices = ["its outputs are gone"]
        cell.pop("execution_count", None)
    else:
        _clear_outputs(cell)
        if "attachments" in cell:
            del cell["attachments"]
            notices = ["its attachments are gone: a code cell cannot hold them"]
    if was_sorted:
        members = sorted(cell.items())
        cell.clear()
        cell.update(members)
    return notices


def _clear_outputs(cell: Json) -> bool:
    """Whether there were any."""
    had_outputs = bool(cell.get("outputs"))
    cell["execution_count"] = None
    cell["outputs"] = []
    return had_outputs


def _is_unicode(text: str) -> bool:
    """Half of a character pair, which JSON can hold only as an escape, is no Unicode text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
