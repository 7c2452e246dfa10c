"""A Jupyter notebook as a model reads it: cells with their ids, sources and shortened outputs.

Reads the JSON as it is (nbformat would validate it against a schema first, for half a second). Changing
notebooks does not live here.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from goat_mcp.core.errors import ToolError, cut_middle
from goat_mcp.core.result import Block, image_block
from goat_mcp.files.documents.excerpt import Parts, parts_that_fit
from goat_mcp.files.documents.image import fit_image_bytes
from goat_mcp.files.documents.text_encoding import TextFormat, decode_for_reading
from goat_mcp.files.documents.visible_text import make_visible

MAX_FILE_BYTES = 100_000_000
MAX_OUTPUT_CHARS = 4_000
MAX_OUTPUTS_CHARS = 20_000
"""Of one cell: what comes after so much is only counted."""
MAX_IMAGES = 10
_IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_OLD_NAMES = {
    "png": "image/png",
    "jpeg": "image/jpeg",
    "text": "text/plain",
    "html": "text/html",
    "svg": "image/svg+xml",
}
"""What nbformat 3 calls the kinds of data that matter here."""
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")

Json = dict[str, Any]


class NotANotebook(ValueError):
    """The file is no JSON, or JSON without a list of cells. The message says which."""


@dataclass(frozen=True)
class ShownNotebook:
    """Cells from `first_cell` on that fit. Images follow the text in the order of their numbers there."""

    parts: Parts
    images: tuple[Block, ...]
    first_cell: int
    total_cells: int
    language: str
    format: TextFormat
    has_escapes: bool
    """Some source is not shown as it is: hidden characters are escaped."""

    @property
    def last_shown(self) -> int:
        return self.first_cell + len(self.parts.texts) - 1


def show_notebook(
    data: bytes, *, first_cell: int, limit: int, max_chars: int, legacy_encoding: str | None = None
) -> ShownNotebook:
    """Up to `limit` cells; `first_cell` counts from 1, negative from the end.

    Raises `NotANotebook`, and `ToolError(ENCODING)` for a legacy encoding nobody knows.
    """
    decoded = decode_for_reading(data, legacy_encoding=legacy_encoding)
    notebook = _parse(decoded.text)
    cells = _cells(notebook)
    start = max(1, first_cell) if first_cell >= 0 else max(1, len(cells) + first_cell + 1)
    images = _Images()
    wanted = list(enumerate(cells))[start - 1 : start - 1 + limit]
    shown = parts_that_fit(images.counting(_cell(cell, index, images) for index, cell in wanted), max_chars)
    sources = (_source(cell) for cell in _objects([cell for _, cell in wanted[: len(shown.texts)]]))
    return ShownNotebook(
        shown,
        images.of_shown(shown),
        start,
        len(cells),
        _language(notebook),
        decoded.format,
        has_escapes=any(make_visible(source) is not source for source in sources),
    )


def position_name(index: int) -> str:
    """What a cell is called by its place, counted from 0."""
    return f"cell-{index}"


def shown_cell_id(cell_id: Any, index: int) -> str:
    """The id a reader sees of the cell at `index`, and names it by."""
    return html.escape(make_visible(cell_id)) if isinstance(cell_id, str) and cell_id else position_name(index)


@dataclass
class _Images:
    """Images met so far, and how many there were after each cell."""

    blocks: list[Block] = field(default_factory=list[Block])
    _after_cell: list[int] = field(default_factory=list[int])

    def counting(self, cells: Iterable[str]) -> Iterator[str]:
        for cell in cells:
            self._after_cell.append(len(self.blocks))
            yield cell

    def of_shown(self, cells: Parts) -> tuple[Block, ...]:
        """Those of cells that are shown, and that are named in what is left of one that was cut."""
        many = self._after_cell[len(cells.texts) - 1] if cells.texts else 0
        if cells.is_cut:
            many = sum(f"\n[image {number}: " in cells.text for number in range(1, many + 1))
        return tuple(self.blocks[:many])

    def show(self, encoded: str, mime_type: str) -> str:
        """The line that stands for an image in the text."""
        if len(self.blocks) >= MAX_IMAGES:
            return f"[{mime_type} not shown: more than {MAX_IMAGES} images; read fewer cells with offset and limit]"
        try:
            fitted = fit_image_bytes(base64.b64decode(encoded))
        except (ValueError, ToolError) as problem:
            return f"[{mime_type} that cannot be shown: {problem}]"
        self.blocks.append(image_block(fitted.data, fitted.mime_type))
        return f"[image {len(self.blocks)}: {fitted.mime_type}, {fitted.width} x {fitted.height}]"


def _parse(text: str) -> Json:
    try:
        # No number is shown; as floats they may have any number of digits.
        notebook = json.loads(text, parse_int=float)
    except (ValueError, RecursionError) as problem:
        raise NotANotebook(f"it is not valid JSON: {problem}") from None
    if not isinstance(notebook, dict):
        raise NotANotebook("its JSON is no object")
    return cast("Json", notebook)


def _cells(notebook: Json) -> list[Any]:
    """All of them, also what is no object: cells are counted."""
    cells: Any = notebook.get("cells")
    if cells is None and isinstance(notebook.get("worksheets"), list):
        # nbformat 3 and older
        cells = [cell for sheet in _objects(notebook["worksheets"]) for cell in _objects(sheet.get("cells"))]
    if not isinstance(cells, list):
        raise NotANotebook("it has no list of cells")
    return cast("list[Any]", cells)


def _objects(value: Any) -> list[Json]:
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("Json", item) for item in items if isinstance(item, dict)]


def _language(notebook: Json) -> str:
    metadata: Any = notebook.get("metadata")
    for key, name in (("language_info", "name"), ("kernelspec", "language")):
        described: Any = cast("Json", metadata).get(key) if isinstance(metadata, dict) else None
        if isinstance(described, dict) and isinstance(language := cast("Json", described).get(name), str):
            return make_visible(language)
    return ""


def _cell(cell: Any, index: int, images: _Images) -> str:
    if not isinstance(cell, dict):
        return f'<cell id="{position_name(index)}">\n[not shown: it is no object]\n</cell>'
    return _cell_of_fields(cast("Json", cell), index, images)


def _cell_of_fields(cell: Json, index: int, images: _Images) -> str:
    kind = cell.get("cell_type")
    shown_id = shown_cell_id(cell.get("id"), index)
    type_tag = "" if kind == "code" else f"<cell_type>{html.escape(make_visible(str(kind)))}</cell_type>"
    lines = [f'<cell id="{shown_id}">{type_tag}']
    if source := _source(cell):
        lines.append(make_visible(source).rstrip("\n"))
    if outputs := list(_outputs(_objects(cell.get("outputs")), images)):
        lines += ["<outputs>", *outputs, "</outputs>"]
    return "\n".join([*lines, "</cell>"])


def _source(cell: Json) -> str:
    return _text(cell.get("source", cell.get("input"))).replace("\r\n", "\n")


def _outputs(outputs: list[Json], images: _Images) -> Iterator[str]:
    chars = 0
    for index, output in enumerate(outputs):
        if chars >= MAX_OUTPUTS_CHARS:
            yield f"[{len(outputs) - index} more outputs not shown]"
            return
        for shown in _output(output, images):
            chars += len(shown)
            yield shown


def _output(output: Json, images: _Images) -> Iterator[str]:
    kind = output.get("output_type")
    if kind == "stream":
        yield from _shortened(_text(output.get("text")))
    elif kind in ("error", "pyerr"):
        traceback = _text(output.get("traceback"), separator="\n")
        yield from _shortened(traceback or f"{output.get('ename')}: {output.get('evalue')}")
    else:
        # nbformat 3 keeps the data beside the type instead of below "data", under names of its own.
        data: Any = output.get("data", {_OLD_NAMES.get(key, key): value for key, value in output.items()})
        yield from _shown_data(cast("Json", data) if isinstance(data, dict) else {}, images)


def _shown_data(data: Json, images: _Images) -> Iterator[str]:
    pictures = [mime_type for mime_type in _IMAGE_TYPES if _text(data.get(mime_type))]
    for mime_type in pictures:
        yield images.show(_text(data[mime_type]), mime_type)
    plain = _text(data.get("text/plain"))
    if plain:
        yield from _shortened(plain)
    elif not pictures and (others := [key for key in data if "/" in key]):
        yield f"[output of type {make_visible(', '.join(others))[:200]}, not shown]"


def _shortened(text: str) -> Iterator[str]:
    plain = make_visible(_ANSI.sub("", text).replace("\r\n", "\n")).rstrip("\n")
    if plain:
        yield cut_middle(plain, MAX_OUTPUT_CHARS)


def _text(value: Any, *, separator: str = "") -> str:
    """Notebooks keep a text whole or as a list of its lines."""
    if isinstance(value, list):
        return separator.join(str(part) for part in cast("list[Any]", value))
    return value if isinstance(value, str) else ""
