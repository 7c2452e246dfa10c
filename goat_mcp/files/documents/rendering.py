"""What a reader gets of a document of each kind: text, notices in plain words, facts for programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from goat_mcp.core.result import Block, image_block
from goat_mcp.files.documents.excerpt import Excerpt, number_lines
from goat_mcp.files.documents.file_type import size_text
from goat_mcp.files.documents.image import FittedImage
from goat_mcp.files.documents.notebook import ShownNotebook
from goat_mcp.files.documents.pdf import PageRange, PdfText
from goat_mcp.files.documents.text_encoding import TextFormat


@dataclass(frozen=True)
class Selection:
    """Which part of a document was asked for, and how much of it fits an answer."""

    offset: int | None
    limit: int | None
    pages: PageRange | None
    max_chars: int
    max_bytes: int | None = None


@dataclass(frozen=True)
class Rendering:
    """`is_whole`: the reader has now seen all there is."""

    text: str
    facts: Mapping[str, Any]
    is_whole: bool
    notices: tuple[str, ...] = ()
    images: tuple[Block, ...] = ()


def render_text(excerpt: Excerpt, asked: Selection) -> Rendering:
    page = number_lines(excerpt, asked.max_chars, asked.max_bytes)
    total = excerpt.total_lines
    end_line = excerpt.start_line + page.lines_shown - 1
    # Who got as many lines as they asked for knows that there may be more.
    is_partial = page.lines_shown > 0 and end_line < total and page.lines_shown != asked.limit
    notices: list[str] = []
    if asked.pages is not None:
        notices.append("pages applies to PDF only")
    notices += _about_characters(excerpt.format, has_escapes=page.has_escapes)
    if not total:
        notices.append("The file exists but is empty")
    elif not excerpt.lines:
        notices.append(f"offset {asked.offset} is past the end: the file has {_count(total, 'line')}")
    elif is_partial:
        of_all = str(total) if excerpt.is_counted else f"at least {total}"
        lines = f"lines {excerpt.start_line}-{end_line} of {of_all}"
        notices.append(f"PARTIAL: {lines}; continue with offset={end_line + 1}")
    facts = {
        "start_line": excerpt.start_line,
        "end_line": end_line,
        "total_lines": total if excerpt.is_counted else None,
        "truncated": is_partial or any(position < page.lines_shown for position in excerpt.cut_lengths),
        "encoding": excerpt.format.encoding,
        "eol": excerpt.eol,
    }
    is_whole = excerpt.is_whole and page.lines_shown == total
    return Rendering(page.text, facts, is_whole, tuple(notices))


def render_image(image: FittedImage, name: str, size: int) -> Rendering:
    notices: tuple[str, ...] = ()
    if image.is_changed:
        notices = (f"shown as {image.mime_type}, {image.width} x {image.height}, {size_text(len(image.data))}",)
    facts = {
        "type": "image",
        "mime_type": image.mime_type,
        "width": image.original_width,
        "height": image.original_height,
        "truncated": False,
    }
    text = f"{name}: {image.original_type}, {image.original_width} x {image.original_height}, {size_text(size)}"
    return Rendering(text, facts, is_whole=True, notices=notices, images=(image_block(image.data, image.mime_type),))


def render_pdf(pdf: PdfText, asked: Selection) -> Rendering:
    notices: list[str] = []
    if asked.offset is not None or asked.limit is not None:
        notices.append("offset and limit do not apply to PDF; use pages")
    if asked.pages is not None and asked.pages.last > pdf.total_pages:
        notices.append(f"the PDF has {_count(pdf.total_pages, 'page')}")
    is_partial = pdf.last_shown < pdf.asked.last
    if is_partial:
        seen = PageRange(pdf.asked.first, pdf.last_shown)
        rest = PageRange(pdf.last_shown + 1, pdf.asked.last)
        notices.append(f'PARTIAL: pages {seen} of {pdf.total_pages}; continue with pages="{rest}"')
    is_truncated = is_partial or pdf.parts.is_cut
    facts = {
        "type": "pdf",
        "first_page": pdf.asked.first,
        "last_page": pdf.last_shown,
        "total_pages": pdf.total_pages,
        "truncated": is_truncated,
    }
    is_whole = pdf.asked == PageRange(1, pdf.total_pages) and not is_truncated
    return Rendering(pdf.parts.text, facts, is_whole, tuple(notices))


def render_notebook(notebook: ShownNotebook, asked: Selection) -> Rendering:
    cells = len(notebook.parts.texts)
    total = notebook.total_cells
    is_partial = 0 < cells != asked.limit and notebook.last_shown < total
    notices: list[str] = []
    if asked.pages is not None:
        notices.append("pages applies to PDF only")
    notices += _about_characters(notebook.format, has_escapes=notebook.has_escapes)
    if not total:
        notices.append("The notebook has no cells")
    elif not cells:
        notices.append(f"offset {asked.offset} is past the end: the notebook has {_count(total, 'cell')}")
    elif is_partial:
        seen = f"cells {notebook.first_cell}-{notebook.last_shown} of {total}"
        notices.append(f"PARTIAL: {seen}; continue with offset={notebook.last_shown + 1}")
    facts = {
        "type": "notebook",
        "first_cell": notebook.first_cell,
        "last_cell": notebook.last_shown,
        "total_cells": total,
        "language": notebook.language,
        "truncated": is_partial or notebook.parts.is_cut,
    }
    is_whole = cells == total and not notebook.parts.is_cut
    return Rendering(notebook.parts.text, facts, is_whole, tuple(notices), notebook.images)


def _about_characters(format: TextFormat, *, has_escapes: bool) -> Iterator[str]:
    """Why what is shown may differ from what the file holds."""
    if has_escapes:
        yield "control and invisible characters are shown escaped, as in \\x1b or \\u202e"
    if format.is_guess:
        yield (
            "not UTF-8, encoding unknown: shown as latin-1; only ASCII can be added unless files.legacy_encoding is set"
        )


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
