"""Tools with an MCP App (SEP-1865): which of them have a document, and which are for that document alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from goat_mcp.catalog.filter import server_of
from goat_mcp.core.names import SEPARATOR, UPSTREAM_PREFIX
from goat_mcp.core.spec import ToolSpec

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


def is_for_apps(meta: Mapping[str, Any]) -> bool:
    """Whether the documents of the tool's own server may call it: they may unless it is said otherwise."""
    visibility = _visibility(meta)
    return visibility is None or "app" in visibility


def is_for_apps_only(meta: Mapping[str, Any]) -> bool:
    """Whether the model is not to know of the tool: hosts keep it from their models, and we from ours and from a
    search."""
    visibility = _visibility(meta) if meta else None
    return visibility is not None and "app" in visibility and "model" not in visibility


def _visibility(meta: Mapping[str, Any]) -> list[Any] | None:
    ui = meta.get(UI)
    visibility = cast("Mapping[str, Any]", ui).get("visibility") if isinstance(ui, Mapping) else None
    return cast("list[Any]", visibility) if isinstance(visibility, list) else None


def meant_by_app(name: str, specs: Iterable[ToolSpec]) -> Sequence[ToolSpec]:
    """The tools that a document may mean by `name`. It knows the tools of its own server by that server's names, and a
    host passes a call of it on as it came, without a word of who calls."""
    named = [spec for spec in specs if spec.toolset == "upstream"]
    with_documents = {server_of(spec) for spec in named if has_app(spec.meta)}
    return [
        spec
        for spec in named
        if (server := server_of(spec)) in with_documents
        and spec.rule_name == f"{UPSTREAM_PREFIX}{server}{SEPARATOR}{name}"
        and is_for_apps(spec.meta)
    ]
