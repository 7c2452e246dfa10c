"""Tools with an MCP App (SEP-1865): which of them have a document, and which are for that document alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

UI = "ui"
FLAT_URI = "ui/resourceUri"
"""The older spelling of `ui.resourceUri`."""
OPENAI_URI = "openai/outputTemplate"
"""The same for hosts of the Apps SDK."""


def has_app(meta: Mapping[str, Any]) -> bool:
    """Whether hosts show a document for the tool, or the document of another tool calls it: hosts find it in the list
    or not at all, so it is never deferred (ERA-7). `meta` is the `_meta` of its definition."""
    if not meta:
        return False
    return isinstance(meta.get(UI), Mapping) or FLAT_URI in meta or OPENAI_URI in meta


def is_for_apps_only(meta: Mapping[str, Any]) -> bool:
    """Whether the model is not to know of the tool: hosts keep it from their models, and we from ours and from a
    search."""
    ui = meta.get(UI) if meta else None
    visibility = cast("Mapping[str, Any]", ui).get("visibility") if isinstance(ui, Mapping) else None
    return isinstance(visibility, list) and "app" in visibility and "model" not in visibility
