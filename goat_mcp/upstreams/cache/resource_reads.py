"""Lists of one upstream's resources as the tools ask for them, from the upstream itself; if it is down, its last ones.

What is asked of several upstreams at once is `resources.py`'s business; what a model sees of it is the tools'.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError, UpstreamError, cut_middle
from goat_mcp.core.mcp_resources import ServerResources
from goat_mcp.files.documents.visible_text import make_visible
from goat_mcp.upstreams.cache.offering_cache import OfferingCache
from goat_mcp.upstreams.calls.resource_requests import ResourceRequests
from goat_mcp.upstreams.listing.paging import Listed
from goat_mcp.upstreams.transports.live_connection import LiveConnection

_METHOD_NOT_FOUND = -32601
_DETAIL_CHARS = 300


@dataclass
class _Found:
    """What a list has brought until now, kept where it ends early."""

    resources: Listed = field(default_factory=Listed)
    templates: Listed = field(default_factory=Listed)


class ResourceReads:
    """Over the requests of one upstream, named `name`; `shelf` has its last lists."""

    def __init__(self, name: str, requests: ResourceRequests, shelf: OfferingCache) -> None:
        self._name = name
        self._requests = requests
        self._shelf = shelf

    async def list(self, max_wait_s: float, caller: ToolContext | None = None) -> ServerResources:
        """All pages of resources and of templates, for `caller` as in `McpResources`.

        Raises `ToolError` where not one entry is known.
        """
        found = _Found()
        problem = ""

        async def run(connection: LiveConnection) -> None:
            found.resources, found.templates = Listed(), Listed()
            if connection.offers("resources"):
                await self._list(connection, "resources/list", "resources", found.resources)
                await self._list(connection, "resources/templates/list", "resourceTemplates", found.templates)

        try:
            await self._requests.run_for(caller, run, max_wait_s, "list its resources")
        except ToolError as failure:
            problem = failure.message.removeprefix(f"upstream {self._name} ")
            if not found.resources.entries and not found.templates.entries:
                last = self._shelf.items
                if not last.resources and not last.templates:
                    raise
                # Down is not empty (ISO-4).
                return ServerResources(self._name, last.resources, last.templates, f"as last listed: {problem}")
        resources, no_uri = _usable(found.resources.entries, "uri")
        templates, no_template = _usable(found.templates.entries, "uriTemplate")
        if not problem:
            self._shelf.compare(resources, templates)
        odd = no_uri + no_template
        cut = found.resources.truncated or found.templates.truncated
        problems = [problem, f"its list was cut: {cut}" if cut else "", f"{odd} entries have no URI" if odd else ""]
        shown = self._shelf.shown_of(templates)
        return ServerResources(self._name, resources, shown, "; ".join(part for part in problems if part))

    async def read(
        self, uri: str, max_wait_s: float, meta: Mapping[str, Any], caller: ToolContext | None = None
    ) -> Mapping[str, Any]:
        """The upstream's result. Raises `ToolError`, `UpstreamError`."""
        return await self._requests.read_for(caller, uri, max_wait_s, meta)

    async def _list(self, connection: LiveConnection, method: str, member: str, listed: Listed) -> None:
        try:
            await connection.list_all(method, member, listed)
        except UpstreamError as refused:
            # Servers without templates, or without a list of what they can read, answer so.
            if refused.code != _METHOD_NOT_FOUND:
                message = make_visible(cut_middle(refused.message, _DETAIL_CHARS))
                raise ToolError(
                    ErrorCode.UPSTREAM,
                    f"upstream {self._name} answered {method} with error {refused.code}: {message}",
                ) from None


def _usable(entries: list[Any], key: str) -> tuple[tuple[Mapping[str, Any], ...], int]:
    """The entries that are objects with a text `key`, each such text once; and how many are none."""
    usable: dict[str, Mapping[str, Any]] = {}
    odd = 0
    for entry in entries:
        text = cast("dict[str, Any]", entry).get(key) if isinstance(entry, dict) else None
        if isinstance(text, str):
            usable.setdefault(text, cast("dict[str, Any]", entry))
        else:
            odd += 1
    return tuple(usable.values()), odd
