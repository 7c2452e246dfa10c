"""The HTML of our MCP Apps: made from the page's templates and style sheet, in one file that needs no other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from markupsafe import Markup

from goat_mcp.core.version import __version__
from goat_mcp.server.ui.pages import Pages

_SCRIPT = Path(__file__).with_name("app.js")
_STYLE = Path(__file__).parents[1] / "ui" / "static" / "ui.css"


def document(tool: str, title: str) -> str:
    """The whole document, without data: it gets that from results of the tool. Blocking."""
    return Pages().text(
        "app.html",
        {
            "tool": tool,
            "title": title,
            "version": __version__,
            # Files of ours: neither holds what would end the element.
            "style": Markup(_STYLE.read_text(encoding="utf-8")),
            "script": Markup(_SCRIPT.read_text(encoding="utf-8")),
        },
    )


def fragment(tool: str, data: Mapping[str, Any]) -> str:
    """What the document of this tool shows of a result."""
    return Pages().text(f"app_{tool}.html", {"data": data})
