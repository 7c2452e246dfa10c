"""Somebody else's text as one field of one line: it can neither end the line nor begin another field."""

from __future__ import annotations

from goat_mcp.core.errors import cut_middle
from goat_mcp.files.documents.visible_text import make_visible

MAX_PATH_CHARS = 4096
_BREAKS = str.maketrans({"\t": "\\t", "\n": "\\n"})


def one_line(text: str, max_chars: int) -> str:
    """`text` cut in the middle, with tabs, line ends and hidden characters as escapes such as `\\t` and `\\x1b`."""
    return make_visible(cut_middle(text, max_chars)).translate(_BREAKS)


def shown_path(path: object) -> str:
    """A path in a result: its name may hold anything but `/` and NUL."""
    return one_line(str(path), MAX_PATH_CHARS)
