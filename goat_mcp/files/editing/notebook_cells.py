"""The cells of a notebook in its text: where each lies, and which one an id means. Changing them lives beside this."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from goat_mcp.core.errors import ErrorCode, ToolError, cut_middle
from goat_mcp.files.documents.notebook import position_name, shown_cell_id
from goat_mcp.files.editing.json_spans import (
    MAX_ITEMS,
    Item,
    JsonArray,
    JsonObject,
    Member,
    TooManyItems,
    array_at,
    object_at,
    skip_blanks,
    value_at,
)

FIRST_MINOR_WITH_IDS = 5
_POSITION = re.compile(r"cell-(\d{1,9})")
_INTEGER = re.compile(r"\d{1,9}")
_MAX_IDS_NAMED = 40
_MAX_ID_CHARS = 64
"""No valid id is longer."""


@dataclass(frozen=True)
class FoundCell:
    """`by_position`: the caller counted cells, so that it matters whether they know the present order."""

    index: int
    by_position: bool


@dataclass(frozen=True)
class NotebookCells:
    """A notebook of nbformat 4.`minor`. `path` is the file in the caller's words."""

    path: str
    text: str
    root: JsonObject
    cells: JsonArray
    minor: int

    @property
    def items(self) -> Sequence[Item]:
        return self.cells.items

    @property
    def has_ids(self) -> bool:
        """Whether this version of the format gives cells ids."""
        return self.minor >= FIRST_MINOR_WITH_IDS

    @cached_property
    def real_ids(self) -> Sequence[str | None]:
        return [self.string_of(item, "id") or None for item in self.items]

    @cached_property
    def shown_ids(self) -> Sequence[str]:
        """The ids as Read shows them: a cell without one goes by its place."""
        return [shown_cell_id(real, index) for index, real in enumerate(self.real_ids)]

    def string_of(self, item: Item, key: str) -> str | None:
        """A string member of a cell; None where there is none, or something else."""
        member = self.member(item, key)
        if member is None or self.text[member.value_start] != '"':
            return None
        return value_at(self.text, member.value_start)[0]

    def member(self, item: Item, key: str) -> Member | None:
        return None if item.fields is None else item.fields.last(key)

    def find(self, cell_id: str) -> FoundCell:
        """The cell meant: by its own id, else, for `cell-N`, by its place from 0.

        Raises `ToolError`: CELL, AMBIGUOUS.
        """
        for ids in (self.real_ids, self.shown_ids):
            found = [index for index, known in enumerate(ids) if known == cell_id]
            if len(found) > 1:
                raise self._ambiguous(cell_id, found)
            if found:
                return FoundCell(found[0], by_position=self.real_ids[found[0]] is None)
        place = _POSITION.fullmatch(cell_id)
        if place is None or int(place[1]) >= len(self.items):
            raise self._unknown(cell_id)
        return FoundCell(int(place[1]), by_position=True)

    def _ambiguous(self, cell_id: str, found: Sequence[int]) -> ToolError:
        places = [position_name(index) for index in found]
        return ToolError(
            ErrorCode.AMBIGUOUS,
            f"{len(found)} cells of {self.path} have the id {cell_id!r}; nothing was written",
            f"Name one by its place: {', '.join(places[:_MAX_IDS_NAMED])}.",
            facts={"cell_ids": places},
        )

    def _unknown(self, cell_id: str) -> ToolError:
        total = len(self.shown_ids)
        named = [cut_middle(known, _MAX_ID_CHARS) for known in self.shown_ids[:_MAX_IDS_NAMED]]
        more = f" and {total - len(named)} more" if total > len(named) else ""
        return ToolError(
            ErrorCode.CELL,
            f"no cell {cell_id!r} in {self.path}; nothing was written",
            f"Its cells: {', '.join(named)}{more}." if named else "It has no cells; insert one without cell_id.",
            facts={"cell_ids": named, "total_cells": total},
        )


def load_cells(text: str, path: str) -> NotebookCells:
    """Raises `ToolError`: NOTEBOOK for what is no JSON, no notebook or not of nbformat 4; TOO_LARGE."""
    arrays: dict[int, JsonArray] = {}

    def end_of(key: str, at: int) -> int:
        if key != "cells" or text[at : at + 1] != "[":
            return value_at(text, at)[1]
        arrays[at] = array_at(text, at)
        return arrays[at].end

    try:
        start = skip_blanks(text, 0)
        if text[start : start + 1] != "{":
            value_at(text, start)
            raise _no_notebook(path, "its JSON is no object")
        root = object_at(text, start, end_of)
        if (rest := skip_blanks(text, root.end)) != len(text):
            raise json.JSONDecodeError("Extra data", text, rest)
    except json.JSONDecodeError as problem:
        raise ToolError(
            ErrorCode.NOTEBOOK,
            f"{path} is not valid JSON: {problem}; nothing was written",
            "Mend that place with Edit, then call again.",
        ) from None
    except RecursionError:
        raise _no_notebook(path, "its JSON is nested too deeply") from None
    except TooManyItems:
        raise ToolError(
            ErrorCode.TOO_LARGE,
            f"{path} has more than {MAX_ITEMS:,} cells; nothing was written",
            "Change it with a program, run by Bash.",
        ) from None
    _check_version(text, root, path)
    cells = root.last("cells")
    if cells is None or cells.value_start not in arrays:
        raise _no_notebook(path, "it has no list of cells")
    return NotebookCells(path, text, root, arrays[cells.value_start], _number(text, root, "nbformat_minor") or 0)


def _check_version(text: str, root: JsonObject, path: str) -> None:
    major = _number(text, root, "nbformat")
    if major is None and root.last("worksheets") is not None and root.last("cells") is None:
        major = 3
    if major is not None and major != 4:
        raise ToolError(
            ErrorCode.NOTEBOOK,
            f"{path} is a notebook of nbformat {major}; only nbformat 4 can be edited; nothing was written",
            "Convert it first: jupyter nbconvert --to notebook --nbformat 4 --inplace FILE, run by Bash."
            if major < 4
            else "Change it with a program that knows this format.",
        )


def _number(text: str, root: JsonObject, key: str) -> int | None:
    member = root.last(key)
    digits = None if member is None else _INTEGER.fullmatch(text, member.value_start, member.end)
    return None if digits is None else int(digits[0])


def _no_notebook(path: str, why: str) -> ToolError:
    return ToolError(
        ErrorCode.NOTEBOOK,
        f"{path} is no Jupyter notebook: {why}; nothing was written",
        "NotebookEdit changes .ipynb files; use Edit for others.",
    )
