"""What is no text goes into a file."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.documents.file_type import image_type, is_pdf
from goat_mcp.state.spill import SpillFiles
from goat_mcp.web.pages.page import Page

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


def save(page: Page, spill: SpillFiles) -> Path:
    """Store the body. Raises `ToolError(IO)`; then there is no file."""
    path: Path | None = None
    try:
        path, descriptor = spill.create("webfetch", file_suffix(page))
        with os.fdopen(descriptor, "wb") as file:
            file.write(page.body)
    except OSError as problem:
        if path is not None:
            with suppress(OSError):
                path.unlink()
        raise ToolError(
            ErrorCode.IO,
            f"{page.final_url[:300]} could not be saved in {spill.state.path}: {problem.strerror}",
            "Tell the user; there may be no room left.",
        ) from None
    return path


def file_suffix(page: Page) -> str:
    """By what the body is, else by what the server or the URL says."""
    if is_pdf(page.body):
        return ".pdf"
    kind = image_type(page.body) or page.media_type
    if kind in _SUFFIXES:
        return _SUFFIXES[kind]
    in_url = _IN_URL.search(page.final_url.rpartition("/")[2])
    return in_url[1].lower() if in_url else ".bin"
