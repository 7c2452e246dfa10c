"""The documents as MCP resources, and what goes into them with a call's result. Their code is loaded when needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from goat_mcp.core.names import APPROVALS_APP, CATALOG_APP
from goat_mcp.core.result import ToolResult
from goat_mcp.server.caller_identity import APP_MIME_TYPE

if TYPE_CHECKING:  # loaded when somebody asks for one
    from goat_mcp.core.resources import Entry, Reading

HTML_META_KEY = "goat-mcp/html"
"""Under it a result carries what the document shows, for the document alone: hosts keep `_meta` from their model."""
TOOL_OF_APP: Mapping[str, str] = MappingProxyType({APPROVALS_APP: "show_approvals", CATALOG_APP: "show_catalog"})
APPS_OF_TOOLS = {tool: uri for uri, tool in TOOL_OF_APP.items()}
_TITLES = {APPROVALS_APP: "What waits for approval", CATALOG_APP: "The catalog of tools"}
_NO_DOMAINS: Mapping[str, list[str]] = {
    name: [] for name in ("connectDomains", "resourceDomains", "frameDomains", "baseUriDomains")
}
_META: Mapping[str, Any] = {"ui": {"csp": _NO_DOMAINS, "prefersBorder": True}}
"""The documents fetch nothing from anywhere."""


def app_entries() -> list[Entry]:
    """Their entries of `resources/list`, for clients that render them."""
    return [
        {"uri": uri, "name": tool, "title": _TITLES[uri], "mimeType": APP_MIME_TYPE, "_meta": _META}
        for uri, tool in TOOL_OF_APP.items()
    ]


async def read_app(uri: str) -> Reading | None:
    """One whole document, without anybody's data; None if the URI is none of them."""
    if (tool := TOOL_OF_APP.get(uri)) is None:
        return None
    from goat_mcp.core.resources import Reading
    from goat_mcp.server.apps.documents import document

    return Reading(await anyio.to_thread.run_sync(document, tool, _TITLES[uri]), APP_MIME_TYPE, _META)


async def with_html(tool: str, result: ToolResult) -> ToolResult:
    """A result of one of these tools, with what its document shows. Others stay as they are."""
    if tool not in APPS_OF_TOOLS or result.structured is None:
        return result
    from goat_mcp.server.apps.documents import fragment

    data: Mapping[str, Any] = result.structured
    html = await anyio.to_thread.run_sync(fragment, tool, data)
    return replace(result, meta={**result.meta, HTML_META_KEY: html})
