"""Paths and lines as they are shown: valid UTF-8, one line each, nothing hidden in them."""

from __future__ import annotations

from goat_mcp.files.documents.visible_text import make_visible


def one_line(text: str) -> str:
    """`text` with control and hidden characters made visible. Bytes that are no UTF-8 show as `\\xff`."""
    if not text.isascii():
        text = text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return make_visible(text).replace("\n", "\\n")
