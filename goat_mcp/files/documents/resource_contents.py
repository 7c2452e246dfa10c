"""The contents of an MCP resource as a model can take them: text, images, and files for what is neither.

They are somebody else's: the type of an image is read off its bytes, and what names a content cannot forge a line.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from goat_mcp.core.errors import ToolError
from goat_mcp.core.result import Block, image_block, text_block
from goat_mcp.files.documents.file_type import HEAD_BYTES, binary_type, file_suffix, image_type, size_text
from goat_mcp.files.documents.image import FittedImage, fit_image_bytes
from goat_mcp.files.documents.visible_text import one_line

MAX_CONTENTS = 100
MAX_IMAGES = 10
MAX_IMAGE_BYTES = 3_000_000
"""Of all images of one resource together, as they are sent; further ones go to files."""
_URI_CHARS = 2_000
_TYPE_CHARS = 100
_URL_SAFE = bytes.maketrans(b"-_", b"+/")

Store = Callable[[bytes, str], Path]
"""Puts bytes into a file whose name ends in a suffix, and returns its path."""


@dataclass
class ShownContents:
    """Blocks in the order of the contents, and facts of each."""

    blocks: list[Block] = field(default_factory=list[Block])
    facts: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    image_bytes: int = 0
    images: int = 0

    def add(self, text: str, **facts: Any) -> None:
        self.blocks.append(text_block(text))
        self.facts.append(facts)


def show_contents(contents: Sequence[Mapping[str, Any]], asked_uri: str, store: Store) -> ShownContents:
    """Takes a while for images: run it in a thread. Raises `OSError` if a file cannot be stored."""
    shown = ShownContents()
    for content in contents[:MAX_CONTENTS]:
        _show(content, asked_uri, store, shown, is_alone=len(contents) == 1)
    if not contents:
        shown.blocks.append(text_block("(the resource is empty)"))
    elif len(contents) > MAX_CONTENTS:
        shown.blocks.append(text_block(f"[{len(contents) - MAX_CONTENTS:,} more contents are not shown]"))
    return shown


def _show(content: Mapping[str, Any], asked_uri: str, store: Store, shown: ShownContents, *, is_alone: bool) -> None:
    uri = content["uri"] if isinstance(content.get("uri"), str) else asked_uri
    claimed = content["mimeType"] if isinstance(content.get("mimeType"), str) else ""
    name, kind = one_line(uri, _URI_CHARS), one_line(claimed, _TYPE_CHARS)
    about: dict[str, Any] = {"uri": name, "mime_type": kind}
    text, blob = content.get("text"), content.get("blob")
    if isinstance(text, str):
        # A lone surrogate is no UTF-8: nothing could carry it further.
        text = text.encode("utf-8", "backslashreplace").decode("utf-8")
        heading = "" if is_alone and uri == asked_uri else f"{name} ({kind or 'text'}):\n"
        shown.add(heading + (text or "(empty)"), **about, kind="text", chars=len(text))
        return
    if not isinstance(blob, str):
        shown.add(f"{name}: neither text nor blob: {json.dumps(content)[:1000]}", **about, kind="unknown")
        return
    data = _decoded(blob)
    if data is None:
        shown.add(f"{name}: its blob is not base64", **about, kind="broken")
        return
    about["bytes"] = len(data)
    problem = ""
    if image_type(data[:HEAD_BYTES]) is not None:
        image = _fitted(data, shown)
        if isinstance(image, FittedImage):
            shown.images += 1
            shown.image_bytes += len(image.data)
            size = f"{image.original_type}, {image.original_width} x {image.original_height}, {size_text(len(data))}"
            changed = f", shown as {image.mime_type}, {image.width} x {image.height}" if image.is_changed else ""
            shown.add(f"{name}: {size}{changed}", **{**about, "mime_type": image.original_type}, kind="image")
            shown.blocks.append(image_block(image.data, image.mime_type))
            return
        problem = f"; not shown: {image}" if image else ""
    path = store(data, file_suffix(data[:HEAD_BYTES], claimed, uri))
    what = kind or f"a file that is {binary_type(data[:HEAD_BYTES])}"
    text = f"{name}: {what}, {size_text(len(data))}, stored in {path}{problem}"
    shown.add(text, **about, kind="file", path=str(path))


def _decoded(blob: str) -> bytes | None:
    """The bytes of base64 as servers write it: with line ends, URL-safe, or without padding. None if it is none."""
    try:
        raw = b"".join(blob.encode("ascii").split()).translate(_URL_SAFE).rstrip(b"=")
        return base64.b64decode(raw + b"=" * (-len(raw) % 4), validate=True)
    except (UnicodeEncodeError, binascii.Error):
        return None


def _fitted(data: bytes, shown: ShownContents) -> FittedImage | str:
    """The image, or why it is not shown."""
    try:
        image = fit_image_bytes(data)
    except ToolError as refused:
        return refused.message
    if shown.images >= MAX_IMAGES or shown.image_bytes + len(image.data) > MAX_IMAGE_BYTES:
        return "enough images are shown already"
    return image
