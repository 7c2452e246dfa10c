"""Read: images, PDF pages and notebooks.

Ids such as read-009 are those of the example cases.
"""

from __future__ import annotations

import base64
import io
import json
import math
import os
import random
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, cast

import pytest
from PIL import Image
from pypdf import PdfWriter
from pypdf.generic import NameObject
from reportlab.pdfgen.canvas import Canvas  # pyright: ignore[reportMissingTypeStubs] - reportlab ships none

from goat_mcp.core.errors import ErrorCode
from goat_mcp.core.result import ToolResult
from goat_mcp.files.documents.pdf import Deadline, PageRange, parse_pages, read_pdf
from goat_mcp.files.documents.rendering import Selection, render_pdf
from goat_mcp.files.settings import FileOptions
from tests.tools.reading import Desk

pytestmark = pytest.mark.anyio


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def picture(format: str, size: tuple[int, int] = (8, 6), mode: str = "RGB") -> bytes:
    buffer = io.BytesIO()
    Image.new(mode, size, "red").save(buffer, format)
    return buffer.getvalue()


def noise(format: str, size: tuple[int, int]) -> bytes:
    buffer = io.BytesIO()
    pixels = random.Random(0).randbytes(size[0] * size[1] * 3)
    Image.frombytes("RGB", size, pixels).save(buffer, format)
    return buffer.getvalue()


def images(result: ToolResult) -> list[tuple[str, bytes]]:
    return [
        (block["mimeType"], base64.b64decode(block["data"])) for block in result.content if block["type"] == "image"
    ]


@pytest.mark.parametrize(
    ("name", "format", "mime_type"),
    [
        pytest.param("pic.png", "JPEG", "image/jpeg", id="read-009 JPEG named png"),
        pytest.param("pic.txt", "PNG", "image/png", id="read-009 PNG named txt"),
        pytest.param("pic", "GIF", "image/gif", id="GIF"),
        pytest.param("pic.webp", "WEBP", "image/webp", id="WebP"),
    ],
)
async def test_a_small_image_passes_as_it_is_under_its_real_type(
    desk: Desk, name: str, format: str, mime_type: str
) -> None:
    data = picture(format)
    path = desk.file(name, data)

    result = await desk.read(path)

    assert images(result) == [(mime_type, data)]
    assert result.text == f"{path}: {mime_type}, 8 x 6, {len(data)} bytes"
    assert result.facts == {"type": "image", "mime_type": mime_type, "width": 8, "height": 6, "truncated": False}


async def test_a_bitmap_is_shown_as_png(desk: Desk) -> None:
    result = await desk.read(desk.file("b.bmp", picture("BMP")))

    assert [mime_type for mime_type, _ in images(result)] == ["image/png"]


async def test_a_large_image_is_scaled_to_1568_on_its_long_side(desk: Desk) -> None:
    result = await desk.read(desk.file("wide.png", picture("PNG", (4000, 1000), "RGBA")))

    [(mime_type, data)] = images(result)
    assert Image.open(io.BytesIO(data)).size == (1568, 392)
    assert mime_type == "image/png"
    assert "[shown as image/png, 1568 x 392" in result.text


@pytest.mark.parametrize("format", ["PNG", "JPEG"])
async def test_an_image_above_500_kb_is_made_smaller(desk: Desk, format: str) -> None:
    data = noise(format, (1200, 900))
    assert len(data) > 500_000

    result = await desk.read(desk.file("noise", data))

    [(mime_type, shown)] = images(result)
    assert mime_type == "image/jpeg"
    assert len(shown) <= 500_000


async def test_an_image_over_50_megapixels_is_refused_before_it_is_decoded(desk: Desk) -> None:
    data = picture("PNG", (8000, 6300), "1")

    # Without its pixel data it could not be decoded anyway: the header alone must decide.
    refused = await desk.refusal(desk.file("huge.png", data[:60]))

    assert refused.code is ErrorCode.TOO_LARGE
    assert "8000 x 6300, 51 megapixels" in refused.message


@pytest.mark.parametrize("data", [picture("PNG")[:50], b"\x89PNG\r\n\x1a\n", b"GIF89a", b"\xff\xd8\xff\xe0junk"])
async def test_a_damaged_image_is_an_error_and_never_reaches_the_model(desk: Desk, data: bytes) -> None:
    refused = await desk.refusal(desk.file("broken.png", data))

    assert refused.code is ErrorCode.BINARY
    assert "broken.png" in refused.message


def pdf(pages: int, text: str = "Text of page") -> bytes:
    buffer = io.BytesIO()
    canvas: Any = Canvas(buffer)
    for number in range(1, pages + 1):
        if text:
            canvas.drawString(72, 700, f"{text} {number}")
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def locked(data: bytes, user_password: str) -> bytes:
    writer = PdfWriter(clone_from=io.BytesIO(data))
    writer.encrypt(user_password, "owner", algorithm="AES-256")
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


async def test_a_short_pdf_is_shown_whole_page_by_page(desk: Desk) -> None:
    result = await desk.read(desk.file("d.pdf", pdf(2)))

    assert result.text == "--- page 1 of 2 ---\nText of page 1\n--- page 2 of 2 ---\nText of page 2"
    assert result.facts == {"type": "pdf", "first_page": 1, "last_page": 2, "total_pages": 2, "truncated": False}


async def test_a_pdf_over_10_pages_needs_pages(desk: Desk) -> None:
    """read-011"""
    path = desk.file("d.pdf", pdf(12))

    unasked = await desk.refusal(path)
    five = await desk.read(path, pages="1-5")
    too_many = await desk.refusal(path, pages="1-30")

    assert unasked.code is ErrorCode.INPUT
    assert "12 pages" in unasked.message
    assert 'pages="1-12"' in unasked.suggestion
    assert [line for line in five.text.splitlines() if line.startswith("---")] == [
        f"--- page {number} of 12 ---" for number in range(1, 6)
    ]
    assert too_many.code is ErrorCode.INPUT
    assert "at most 20 pages" in too_many.message


async def test_pages_past_the_end_are_told_with_the_number_there_is(desk: Desk) -> None:
    path = desk.file("d.pdf", pdf(3))

    past = await desk.refusal(path, pages="4")
    clipped = await desk.read(path, pages="3-9")

    assert past.message.endswith("'4' is past the end; the PDF has 3 pages")
    assert clipped.text == "--- page 3 of 3 ---\nText of page 3\n[the PDF has 3 pages]"


@pytest.mark.parametrize("pages", ["0", "5-1", "a", "1,2", "-3", "1-", "1-21", "99999999999"])
async def test_senseless_pages_are_refused_whatever_the_file(desk: Desk, pages: str) -> None:
    refused = await desk.refusal(desk.file("d.pdf", pdf(1)), pages=pages)

    assert refused.code is ErrorCode.INPUT
    assert pages in refused.message


@pytest.mark.parametrize(("pages", "expected"), [("3", PageRange(3, 3)), (" 1 - 20 ", PageRange(1, 20))])
def test_pages_are_one_or_a_range(pages: str, expected: PageRange) -> None:
    assert parse_pages(pages) == expected


async def test_pages_come_as_a_number_too(desk: Desk) -> None:
    result = await desk.read(desk.file("d.pdf", pdf(3)), pages=2)

    assert result.text == "--- page 2 of 3 ---\nText of page 2"


async def test_a_pdf_that_does_not_fit_says_which_pages_are_left(desk: Desk) -> None:
    result = await desk.read(desk.file("d.pdf", pdf(3, "words " * 3600)))

    assert len(result.text) <= 48_000
    assert result.text.endswith('[PARTIAL: pages 1-2 of 3; continue with pages="3"]')


async def test_a_page_without_text_says_so(desk: Desk) -> None:
    result = await desk.read(desk.file("scan.pdf", pdf(1, "")))

    assert "(no text on this page; it may be a scan or a drawing)" in result.text


async def test_a_pdf_that_needs_a_password_says_so_and_one_that_does_not_is_read(desk: Desk) -> None:
    refused = await desk.refusal(desk.file("locked.pdf", locked(pdf(1), "secret")))
    result = await desk.read(desk.file("open.pdf", locked(pdf(1), "")))

    assert refused.code is ErrorCode.BINARY
    assert refused.message.endswith("locked.pdf: the PDF is encrypted and opens only with a password")
    assert result.text == "--- page 1 of 1 ---\nText of page 1"


@pytest.mark.parametrize("data", [b"%PDF-1.4\ngarbage", b"%PDF-1.7\n", pdf(2)[:700]])
async def test_a_damaged_pdf_is_an_error(desk: Desk, data: bytes) -> None:
    refused = await desk.refusal(desk.file("d.pdf", data))

    assert refused.code is ErrorCode.BINARY
    assert "d.pdf: the PDF cannot be read" in refused.message


def notebook(*cells: dict[str, Any]) -> str:
    described = {"metadata": {"language_info": {"name": "python"}}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps({"cells": cells, **described})


def code(cell_id: str, source: Any, *outputs: dict[str, Any]) -> dict[str, Any]:
    return {"cell_type": "code", "id": cell_id, "source": source, "outputs": list(outputs), "metadata": {}}


async def test_a_notebook_is_its_cells_in_order_with_ids_outputs_and_images(desk: Desk) -> None:
    """read-012"""
    png = picture("PNG")
    path = desk.file(
        "n.ipynb",
        notebook(
            {"cell_type": "markdown", "id": "intro", "source": ["# Title\n", "text"], "metadata": {}},
            code(
                "plot",
                "show()",
                {"output_type": "stream", "name": "stdout", "text": ["a\n", "b\n"]},
                {
                    "output_type": "display_data",
                    "data": {"image/png": base64.b64encode(png).decode(), "text/plain": "<Figure>"},
                },
                {"output_type": "execute_result", "data": {"text/html": "<b>x</b>"}},
            ),
            code("boom", ["1/0"], {"output_type": "error", "traceback": ["\x1b[31mZeroDivisionError\x1b[0m", "end"]}),
        ),
    )

    result = await desk.read(path)

    assert result.text == (
        '<cell id="intro"><cell_type>markdown</cell_type>\n# Title\ntext\n</cell>\n'
        '<cell id="plot">\nshow()\n<outputs>\na\nb\n[image 1: image/png, 8 x 6]\n<Figure>\n'
        "[output of type text/html, not shown]\n</outputs>\n</cell>\n"
        '<cell id="boom">\n1/0\n<outputs>\nZeroDivisionError\nend\n</outputs>\n</cell>'
    )
    assert images(result) == [("image/png", png)]
    assert result.facts == {
        "type": "notebook",
        "first_cell": 1,
        "last_cell": 3,
        "total_cells": 3,
        "language": "python",
        "truncated": False,
    }


async def test_a_huge_output_is_cut_in_the_middle(desk: Desk) -> None:
    """read-012"""
    path = desk.file("n.ipynb", notebook(code("c", "x", {"output_type": "stream", "text": "y" * 100_000 + "end"})))

    result = await desk.read(path)

    assert len(result.text) < 5_000
    assert "characters cut]" in result.text
    assert "end\n</outputs>" in result.text


async def test_cells_without_id_are_counted_from_0(desk: Desk) -> None:
    path = desk.file("n.ipynb", notebook({"cell_type": "code", "source": "a"}, {"cell_type": "raw", "source": "b"}))

    result = await desk.read(path)

    assert result.text == '<cell id="cell-0">\na\n</cell>\n<cell id="cell-1"><cell_type>raw</cell_type>\nb\n</cell>'


async def test_a_long_notebook_pages_by_cells(desk: Desk) -> None:
    path = desk.file("n.ipynb", notebook(*(code(f"c{number}", "z" * 9_000) for number in range(1, 12))))

    first = await desk.read(path)
    rest = await desk.read(path, offset=6)
    last = await desk.read(path, offset=-1)
    past = await desk.read(path, offset=12)

    assert first.text.endswith("[PARTIAL: cells 1-5 of 11; continue with offset=6]")
    assert rest.text.startswith('<cell id="c6">')
    assert last.text.startswith('<cell id="c11">')
    assert past.text == "[offset 12 is past the end: the notebook has 11 cells]"


async def test_images_of_cells_that_do_not_fit_stay_away(desk: Desk) -> None:
    shown = {
        "output_type": "display_data",
        "data": {"image/png": base64.b64encode(picture("PNG")).decode()},
    }
    path = desk.file("n.ipynb", notebook(*(code(f"c{number}", "z" * 20_000, shown) for number in range(4))))

    result = await desk.read(path)

    assert "cells 1-2 of 4" in result.text
    assert len(images(result)) == 2


async def test_an_image_that_is_none_is_named_in_its_place(desk: Desk) -> None:
    broken = {"output_type": "display_data", "data": {"image/png": "AAAA"}}

    result = await desk.read(desk.file("n.ipynb", notebook(code("c", "x", broken))))

    assert "[image/png that cannot be shown:" in result.text
    assert images(result) == []


@pytest.mark.parametrize("content", ['{"cells": [', "[1]", '{"cells": 3}'])
async def test_what_is_no_notebook_is_shown_as_text_with_the_reason(desk: Desk, content: str) -> None:
    result = await desk.read(desk.file("n.ipynb", content))

    assert result.text.startswith(f"1\t{content}\n[not a readable notebook, so shown as text: ")


async def test_a_notebook_over_100_mb_is_refused(desk: Desk) -> None:
    path = desk.file("n.ipynb", "{}")
    os.truncate(path, 101_000_000)

    refused = await desk.refusal(path)

    assert refused.code is ErrorCode.TOO_LARGE


async def test_the_old_notebook_format_is_read_too(desk: Desk) -> None:
    old = {"worksheets": [{"cells": [{"cell_type": "code", "input": ["a"], "outputs": []}]}], "nbformat": 3}

    result = await desk.read(desk.file("n.ipynb", json.dumps(old)))

    assert result.text == '<cell id="cell-0">\na\n</cell>'


async def test_hidden_characters_of_notebooks_are_escaped(desk: Desk) -> None:
    path = desk.file("n.ipynb", notebook(code('a"\u202e', "s\x1b", {"output_type": "stream", "text": "o\ud800\u202e"})))

    result = await desk.read(path)

    assert result.text == (
        '<cell id="a&quot;\\u202e">\ns\\x1b\n<outputs>\no\\ud800\\u202e\n</outputs>\n</cell>\n'
        "[control and invisible characters are shown escaped, as in \\x1b or \\u202e]"
    )


@pytest.mark.parametrize(
    ("bom", "encoding"), [(b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"), (b"\xff\xfe\0\0", "utf-32-le")]
)
async def test_a_notebook_is_read_in_the_encoding_its_mark_names(desk: Desk, bom: bytes, encoding: str) -> None:
    result = await desk.read(desk.file("n.ipynb", bom + notebook(code("c", "\u20ac")).encode(encoding)))

    assert result.text == '<cell id="c">\n\u20ac\n</cell>'


async def test_a_notebook_of_unknown_encoding_is_shown_with_a_notice(desk: Desk) -> None:
    path = desk.file("n.ipynb", b'{"cells": [{"cell_type": "code", "id": "c", "source": "\xe9"}]}')

    guessed = await desk.read(path)
    named = await Desk(desk.folder, FileOptions(legacy_encoding="cp850")).read(path)

    assert guessed.text.startswith('<cell id="c">\n\u00e9\n</cell>\n[not UTF-8, encoding unknown: shown as latin-1')
    assert named.text == '<cell id="c">\n\u00da\n</cell>'


async def test_a_number_of_any_length_does_not_hide_a_notebook(desk: Desk) -> None:
    path = desk.file("n.ipynb", '{"cells": [{"cell_type": "code", "source": "x", "n": ' + "9" * 5000 + "}]}")

    assert (await desk.read(path)).text == '<cell id="cell-0">\nx\n</cell>'


async def test_an_image_in_letters_no_image_has_is_named_in_its_place(desk: Desk) -> None:
    broken = {"output_type": "display_data", "data": {"image/png": "\u00e9"}}

    result = await desk.read(desk.file("n.ipynb", notebook(code("c", "x", broken))))

    assert "[image/png that cannot be shown:" in result.text


async def test_windows_line_ends_in_a_source_are_line_ends(desk: Desk) -> None:
    result = await desk.read(desk.file("n.ipynb", notebook(code("c", ["a\r\n", "b\r\n", "c"]))))

    assert result.text == '<cell id="c">\na\nb\nc\n</cell>'


async def test_who_reads_escaped_characters_of_a_source_is_told(desk: Desk) -> None:
    output = {"output_type": "stream", "text": "\x07"}
    source = await desk.read(desk.file("s.ipynb", notebook(code("a", "x"), code("c", "s\x1b"))))
    other = await desk.read(desk.file("o.ipynb", notebook(code("c", "x", output))))

    assert source.text.endswith("\n[control and invisible characters are shown escaped, as in \\x1b or \\u202e]")
    assert other.text.endswith("\n</cell>")


async def test_images_of_the_old_notebook_format_are_shown(desk: Desk) -> None:
    png = picture("PNG")
    output = {"output_type": "pyout", "png": base64.b64encode(png).decode(), "text": ["<Figure>"]}
    old = {"worksheets": [{"cells": [{"cell_type": "code", "input": ["a"], "outputs": [output]}]}], "nbformat": 3}

    result = await desk.read(desk.file("n.ipynb", json.dumps(old)))

    assert "[image 1: image/png, 8 x 6]\n<Figure>" in result.text
    assert images(result) == [("image/png", png)]


async def test_a_cell_of_many_outputs_does_not_push_the_others_out(desk: Desk) -> None:
    outputs = [{"output_type": "stream", "text": f"{number} " + "y" * 3_000} for number in range(100)]
    path = desk.file("n.ipynb", notebook(code("many", "x", *outputs), code("next", "z")))

    result = await desk.read(path)

    assert "\n6 yyy" in result.text and "\n7 yyy" not in result.text
    assert '[93 more outputs not shown]\n</outputs>\n</cell>\n<cell id="next">\nz\n</cell>' in result.text


async def test_images_behind_the_cut_of_a_cell_stay_away(desk: Desk) -> None:
    shown = {"output_type": "display_data", "data": {"image/png": base64.b64encode(picture("PNG")).decode()}}

    result = await desk.read(desk.file("n.ipynb", notebook(code("c", "z" * 60_000, shown))))

    assert "[... cut:" in result.text
    assert images(result) == []


async def test_pages_that_were_not_read_in_time_are_left_for_the_next_call(desk: Desk) -> None:
    seen: list[str] = []

    def shown(deadline_s: float, *, stopped: bool = False) -> str:
        stop = threading.Event()
        if stopped:
            stop.set()
        found = read_pdf(io.BytesIO(pdf(3)), None, 48_000, Deadline(deadline_s, stop))
        answer = render_pdf(found, Selection(None, None, None, 48_000))
        seen.append(answer.text)
        return " ".join(answer.notices)

    in_time, late, stopped = shown(math.inf), shown(0), shown(math.inf, stopped=True)

    assert in_time == ""
    assert late == stopped == 'PARTIAL: pages 1 of 3; continue with pages="2-3"'
    assert seen[1] == "--- page 1 of 3 ---\nText of page 1"


def with_page_broken(data: bytes, *pages: int) -> bytes:
    """The text of these pages is packed by a method nobody knows."""
    writer = PdfWriter(clone_from=io.BytesIO(data))
    for number in pages:
        content = writer.pages[number - 1]["/Contents"].get_object()
        cast("dict[NameObject, NameObject]", content)[NameObject("/Filter")] = NameObject("/\u202eNew")
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


async def test_a_page_that_cannot_be_read_costs_only_itself(desk: Desk) -> None:
    result = await desk.read(desk.file("d.pdf", with_page_broken(pdf(3), 2)))

    lines = result.text.splitlines()
    assert [lines[index] for index in (0, 1, 2, 4, 5)] == [
        "--- page 1 of 3 ---",
        "Text of page 1",
        "--- page 2 of 3 ---",
        "--- page 3 of 3 ---",
        "Text of page 3",
    ]
    assert lines[3].startswith("(this page cannot be read: ") and "\\u202e" in lines[3]


async def test_a_pdf_of_which_no_page_can_be_read_is_an_error(desk: Desk) -> None:
    refused = await desk.refusal(desk.file("d.pdf", with_page_broken(pdf(2), 1, 2)))

    assert refused.code is ErrorCode.BINARY
    assert "d.pdf: the PDF cannot be read" in refused.message
    assert "\u202e" not in refused.message


async def test_a_pdf_locked_for_certain_readers_is_an_error(desk: Desk) -> None:
    data = locked(pdf(1), "").replace(b"/Filter /Standard", b"/Filter /Adobe.X")

    refused = await desk.refusal(desk.file("d.pdf", data))

    assert refused.code is ErrorCode.BINARY
    assert "d.pdf: the PDF cannot be read" in refused.message


def test_reading_tools_start_without_heavy_libraries() -> None:
    program = "import sys, goat_mcp.tools.read; print([m for m in ('PIL', 'pypdf', 'nbformat') if m in sys.modules])"

    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)

    assert finished.stdout == "[]\n"
