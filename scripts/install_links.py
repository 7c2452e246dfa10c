"""The links that add goat-mcp to Cursor and VS Code with one click, for the README.

Both hosts take the entry from the link. They tell the server which folders are open, so that it needs no `--workspace`.
"""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import quote

NAME = "goat"
ENTRY: dict[str, Any] = {"command": "uvx", "args": ["goat-mcp", "serve"]}


def cursor_link() -> str:
    """Cursor's page that opens `cursor://anysphere.cursor-deeplink/mcp/install`."""
    config = base64.b64encode(json.dumps(ENTRY).encode()).decode()
    return f"https://cursor.com/en/install-mcp?name={NAME}&config={quote(config, safe='')}"


def vscode_link() -> str:
    """VS Code's page that opens `vscode:mcp/install`."""
    config = json.dumps(ENTRY, separators=(",", ":"))
    return f"https://insiders.vscode.dev/redirect/mcp/install?name={NAME}&config={quote(config, safe='')}"


def links() -> str:
    """A line of Markdown."""
    return f"[Add to Cursor]({cursor_link()}) · [Add to VS Code]({vscode_link()})\n"
