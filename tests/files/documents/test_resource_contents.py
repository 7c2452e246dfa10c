"""Contents of MCP resources as blocks: order, images by their bytes, files for the rest."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from goat_mcp.core.result import Block, text_block
from goat_mcp.files.documents.file_type import file_suffix
from goat_mcp.tools.read_mcp_resource import MAX_CONTENTS, MAX_IMAGES, ShownContents, show_contents


class Files:
    """Keeps what is stored."""

    def __init__(self) -> None:
        self.stored: list[tuple[str, bytes]] = []

    def __call__(self, data: bytes, suffix: str) -> Path:
        self.stored.append((suffix, data))
        return Path(f"/spill/{len(self.stored)}{suffix}")


def picture(format: str = "PNG", size: tuple[int, int] = (4, 3), noise: bool = False) -> bytes:
    image = Image.effect_noise(size, 90) if noise else Image.new("RGB", size, "red")
    buffer = io.BytesIO()
    image.convert("RGB").save(buffer, format)
    return buffer.getvalue()


def blob(data: bytes, uri: str = "x://b", **members: Any) -> dict[str, Any]:
    return {"uri": uri, "blob": base64.b64encode(data).decode(), **members}


def shown(*contents: dict[str, Any], files: Files | None = None) -> ShownContents:
    return show_contents(contents, "x://asked", files or Files())


def texts(blocks: list[Block]) -> list[str]:
    return [block["text"] if block["type"] == "text" else block["mimeType"] for block in blocks]


def test_several_contents_come_in_order_each_under_its_uri() -> None:
    result = shown(
        {"uri": "x://1", "mimeType": "text/csv", "text": "a,b"},
        blob(picture(), "x://2", mimeType="application/octet-stream"),
        blob(b"\0\1", "x://3.dat"),
        {"uri": "x://4", "text": ""},
    )

    assert texts(result.blocks) == [
        "x://1 (text/csv):\na,b",
        f"x://2: image/png, 4 x 3, {len(picture())} bytes",
        "image/png",
        f"x://3.dat: a file that is of unknown type, 2 bytes, stored in {Path('/spill/1.dat')}",
        "x://4 (text):\n(empty)",
    ]
    assert [fact["kind"] for fact in result.facts] == ["text", "image", "file", "text"]


def test_a_single_text_of_another_uri_than_asked_for_names_it() -> None:
    assert texts(shown({"uri": "x://other", "text": "t"}).blocks) == ["x://other (text):\nt"]
    assert texts(shown({"uri": "x://asked", "text": "t"}).blocks) == ["t"]


def test_what_names_a_content_stays_on_its_line() -> None:
    result = shown({"uri": "x://a\nx://b (text):", "mimeType": "t\n", "text": "t"}, {"uri": "x://c", "text": "u"})

    assert texts(result.blocks)[0] == "x://a\\nx://b (text): (t\\n):\nt"


@pytest.mark.parametrize(("format", "mime"), [("PNG", "image/png"), ("JPEG", "image/jpeg"), ("GIF", "image/gif")])
def test_an_image_is_what_its_bytes_say(format: str, mime: str) -> None:
    result = shown(blob(picture(format), mimeType="text/html"))

    assert result.blocks[1] == {
        "type": "image",
        "data": base64.b64encode(picture(format)).decode(),
        "mimeType": mime,
    }
    assert result.facts[0]["mime_type"] == mime


def test_a_large_image_is_scaled_down() -> None:
    result = shown(blob(picture(size=(3_000, 30))))

    assert "3000 x 30" in texts(result.blocks)[0] and "1568 x 16" in texts(result.blocks)[0]


def test_bytes_that_only_begin_like_an_image_become_a_file_and_say_why() -> None:
    files = Files()

    result = shown(blob(picture()[:40]), files=files)

    assert files.stored == [(".png", picture()[:40])]
    assert "not shown: the file begins like an image but cannot be decoded" in texts(result.blocks)[0]


def test_further_images_than_a_few_go_to_files() -> None:
    files = Files()

    result = shown(*(blob(picture()) for _ in range(MAX_IMAGES + 2)), files=files)

    assert [block["type"] for block in result.blocks].count("image") == MAX_IMAGES
    assert [suffix for suffix, _ in files.stored] == [".png", ".png"]


def test_images_of_many_megabytes_together_go_to_files() -> None:
    files = Files()
    heavy = picture("JPEG", (1_500, 1_500), noise=True)

    result = shown(*(blob(heavy) for _ in range(9)), files=files)

    sent = sum(len(block["data"]) for block in result.blocks if block["type"] == "image")
    assert 0 < len(files.stored) < 9
    assert sent * 3 / 4 <= 3_000_000


@pytest.mark.parametrize(
    "written",
    ["+/+/AA==", "-_-_AA==", "+/+/AA", " +/+/\nAA==\n"],
    ids=["plain", "url-safe", "unpadded", "with line ends"],
)
def test_base64_is_taken_as_servers_write_it(written: str) -> None:
    files = Files()

    shown({"uri": "x://b", "blob": written}, files=files)

    assert files.stored == [(".bin", b"\xfb\xff\xbf\x00")]


@pytest.mark.parametrize("written", ["no base64!", "é", "A"])
def test_a_blob_that_is_no_base64_is_said_and_costs_no_other_content(written: str) -> None:
    result = shown({"uri": "x://b", "blob": written}, {"uri": "x://c", "text": "t"})

    assert texts(result.blocks) == ["x://b: its blob is not base64", "x://c (text):\nt"]


def test_an_odd_content_is_shown_as_its_json() -> None:
    result = shown({"uri": 7, "hologram": [1]})

    assert texts(result.blocks) == ['x://asked: neither text nor blob: {"uri": 7, "hologram": [1]}']


def test_no_contents_at_all_is_an_answer() -> None:
    assert shown().blocks == [text_block("(the resource is empty)")]


def test_very_many_contents_are_counted() -> None:
    result = shown(*({"uri": f"x://{number}", "text": "t"} for number in range(MAX_CONTENTS + 1_000)))

    assert len(result.blocks) == MAX_CONTENTS + 1
    assert texts(result.blocks)[-1] == "[1,000 more contents are not shown]"


@pytest.mark.parametrize(
    ("head", "claimed", "uri", "suffix"),
    [
        (b"%PDF-1.7", "text/plain", "", ".pdf"),
        (b"\x89PNG\r\n\x1a\n", "", "x://a.txt", ".png"),
        (b"PK\x03\x04", "application/zip", "x://report.docx", ".zip"),
        (b"PK\x03\x04", "application/octet-stream", "x://report.DOCX", ".docx"),
        (b"{}", "application/json; charset=utf-8", "", ".json"),
        (b"\0", "image/png", "", ".bin"),
        (b"\0", "application/pdf", "x://h/a.dat?x=.exe", ".dat"),
        (b"\0", "no/such", "file:///a/b.c%2F..%2Fd", ".bin"),
        (b"\0", "", "x://[bad", ".bin"),
        (b"\0", "", "x://a.toolongtobeone", ".bin"),
        (b"\0", "", "x://a.s h", ".bin"),
        (b"\0", "", "https://example.com", ".bin"),
    ],
)
def test_a_file_is_named_by_its_content_then_by_what_is_claimed(
    head: bytes, claimed: str, uri: str, suffix: str
) -> None:
    assert file_suffix(head, claimed, uri) == suffix
