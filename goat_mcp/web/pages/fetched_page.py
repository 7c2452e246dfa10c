"""A fetched page: its body, what kind of content it is, and saving one that is no text to a file."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from goat_mcp.core import platform
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.documents.file_type import image_type, is_pdf
from goat_mcp.files.documents.text_encoding import looks_binary
from goat_mcp.state.spill import SpillFiles
from goat_mcp.web.pages import macos_quarantine, windows_zone

_MEDIA_TYPE = re.compile(r"\s*([A-Za-z0-9!#$&^_.+-]{1,60}/[A-Za-z0-9!#$&^_.+-]{1,80})")
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_LOOKS_LIKE_HTML = re.compile(
    rb"\s*(?:<!--.*?-->\s*)?<(?:!doctype html|html|head|body)[\s>]", re.IGNORECASE | re.DOTALL
)
_TEXT_SUFFIXES = ("+json", "+xml", "+yaml", "json", "xml", "javascript", "ecmascript", "yaml", "toml", "x-sh", "sql")
_SAMPLE_BYTES = 64 * 1024


class Markdown(NamedTuple):
    """`notices` say what of the page is missing."""

    text: str
    notices: tuple[str, ...]


@dataclass
class Page:
    """`content_type` is the header as it came. `is_cut`: the body was longer. `markdown` is kept once it is made."""

    url: str
    final_url: str
    status: int
    content_type: str
    body: bytes
    is_cut: bool = False
    markdown: Markdown | None = None

    @property
    def media_type(self) -> str:
        """Without parameters, in lower case; empty if the server named none that is well formed."""
        found = _MEDIA_TYPE.match(self.content_type)
        return "" if found is None else found[1].lower()

    @property
    def is_html(self) -> bool:
        if self.media_type:
            return self.media_type in _HTML
        return _LOOKS_LIKE_HTML.match(self.body[:1024]) is not None

    @property
    def is_binary(self) -> bool:
        """By the bytes; what the server says only decides where they could be either."""
        sample = self.body[:_SAMPLE_BYTES]
        if is_pdf(sample) or image_type(sample) is not None:
            return True
        said = self.content_type.lower()
        if self.says_text and "charset" in said:
            # Where the characters are named, only a NUL speaks against text, and not even that in a wide encoding.
            return b"\0" in sample and "utf-16" not in said
        return looks_binary(sample)

    @property
    def says_text(self) -> bool:
        return self.media_type.startswith("text/") or self.media_type.endswith(_TEXT_SUFFIXES)

    @property
    def size(self) -> int:
        """Bytes it takes to keep."""
        return len(self.body) + (0 if self.markdown is None else len(self.markdown.text))


_SUFFIXES = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/gif": ".gif",
    "image/webp": ".webp",
    "image/bmp": ".bmp",
    "application/zip": ".zip",
    "application/gzip": ".gz",
    "application/x-tar": ".tar",
    "audio/mpeg": ".mp3",
    "video/mp4": ".mp4",
}
_IN_URL = re.compile(r"(\.[A-Za-z0-9]{1,8})(?:\?|\Z)")


def save_body(page: Page, spill: SpillFiles, warn: Callable[..., None]) -> Path:
    """Store the body, marked as a file from the internet. Raises `ToolError(IO)`; then there is no file."""
    path: Path | None = None
    try:
        path, descriptor = spill.create("webfetch", file_suffix(page))
        with os.fdopen(descriptor, "wb") as file:
            file.write(page.body)
    except OSError as problem:
        if path is not None:
            with suppress(OSError):  # what is reported is why it could not be written
                path.unlink()
        raise ToolError(
            ErrorCode.IO,
            f"{page.final_url[:300]} could not be saved in {spill.state.path}: {problem.strerror}",
            "Tell the user; there may be no room left.",
        ) from None
    try:
        _mark_as_download(path, page.final_url)
    except OSError as problem:  # a file system without attributes or streams
        warn("a saved file is not marked as a download", file=str(path), problem=problem.strerror)
    return path


def _mark_as_download(path: Path, url: str) -> None:
    """macOS and Windows ask before they run a file that has this mark. Raises `OSError`."""
    if platform.SYSTEM == "macos":
        macos_quarantine.mark(path)
    elif platform.SYSTEM == "windows":
        windows_zone.mark(path, url)


def file_suffix(page: Page) -> str:
    """By what the body is, else by what the server or the URL says."""
    if is_pdf(page.body):
        return ".pdf"
    kind = image_type(page.body) or page.media_type
    if kind in _SUFFIXES:
        return _SUFFIXES[kind]
    in_url = _IN_URL.search(page.final_url.rpartition("/")[2])
    return in_url[1].lower() if in_url else ".bin"
