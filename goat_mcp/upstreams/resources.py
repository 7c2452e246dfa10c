"""The resources of all upstreams, as `core.mcp_resources.McpResources`. One that is down has those it listed last.

What a model sees of them is the tools' business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import anyio

from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError, UpstreamError, cut_middle
from goat_mcp.core.resources import ServerResources
from goat_mcp.core.suggestions import nearest
from goat_mcp.files.documents.visible_text import make_visible
from goat_mcp.upstreams.cache.offering_cache import OfferingCache
from goat_mcp.upstreams.calls.resource_requests import ResourceRequests
from goat_mcp.upstreams.config.upstream_files import UpstreamProblem
from goat_mcp.upstreams.listing.paging import Listed
from goat_mcp.upstreams.upstream import Upstream

if TYPE_CHECKING:  # loaded with the first connection
    from goat_mcp.upstreams.transports.connection import Connection


_METHOD_NOT_FOUND = -32601
_DETAIL_CHARS = 300


@dataclass
class _Lists:
    """What a list has brought until now, kept where it ends early."""

    resources: Listed = field(default_factory=Listed)
    templates: Listed = field(default_factory=Listed)


@dataclass(eq=False)
class ResourceReads:
    """Over the requests of one upstream, named `name`; `cache` has its last lists."""

    name: str
    requests: ResourceRequests
    cache: OfferingCache

    async def list(self, max_wait_s: float, caller: ToolContext | None = None) -> ServerResources:
        """All pages of resources and of templates, for `caller` as in `McpResources`.

        Raises `ToolError` where not one entry is known.
        """
        found = _Lists()
        problem = ""

        async def run(connection: Connection) -> None:
            found.resources, found.templates = Listed(), Listed()
            if connection.offers("resources"):
                await self._list(connection, "resources/list", "resources", found.resources)
                await self._list(connection, "resources/templates/list", "resourceTemplates", found.templates)

        try:
            await self.requests.run_for(caller, run, max_wait_s, "list its resources")
        except ToolError as failure:
            problem = failure.message.removeprefix(f"upstream {self.name} ")
            if not found.resources.entries and not found.templates.entries:
                last = self.cache.items
                if not last.resources and not last.templates:
                    raise
                # Down is not empty (ISO-4).
                return ServerResources(self.name, last.resources, last.templates, f"as last listed: {problem}")
        resources, no_uri = _usable(found.resources.entries, "uri")
        templates, no_template = _usable(found.templates.entries, "uriTemplate")
        if not problem:
            self.cache.compare(resources, templates)
        without_key = no_uri + no_template
        cut = found.resources.truncated or found.templates.truncated
        problems = [
            problem,
            f"its list was cut: {cut}" if cut else "",
            f"{without_key} entries have no URI" if without_key else "",
        ]
        shown = self.cache.shown_of(templates)
        return ServerResources(self.name, resources, shown, "; ".join(part for part in problems if part))

    async def read(
        self, uri: str, max_wait_s: float, meta: Mapping[str, Any], caller: ToolContext | None = None
    ) -> Mapping[str, Any]:
        """The upstream's result. Raises `ToolError`, `UpstreamError`."""
        return await self.requests.read_for(caller, uri, max_wait_s, meta)

    async def _list(self, connection: Connection, method: str, member: str, listed: Listed) -> None:
        try:
            await connection.list_all(method, member, listed)
        except UpstreamError as refused:
            # Servers without templates, or without a list of what they can read, answer so.
            if refused.code != _METHOD_NOT_FOUND:
                message = make_visible(cut_middle(refused.message, _DETAIL_CHARS))
                raise ToolError(
                    ErrorCode.UPSTREAM,
                    f"upstream {self.name} answered {method} with error {refused.code}: {message}",
                ) from None


def _usable(entries: list[Any], key: str) -> tuple[tuple[Mapping[str, Any], ...], int]:
    """The entries that are objects with a text `key`, each such text once; and how many are none."""
    usable: dict[str, Mapping[str, Any]] = {}
    without_key = 0
    for entry in entries:
        text = cast("dict[str, Any]", entry).get(key) if isinstance(entry, dict) else None
        if isinstance(text, str):
            usable.setdefault(text, cast("dict[str, Any]", entry))
        else:
            without_key += 1
    return tuple(usable.values()), without_key


_NAMES_SHOWN = 20


class UpstreamResources:
    """One `ResourceReads` per upstream. Entries left out of use are known by their `problems`.

    `why_denied` says of a server's name in tool names what keeps it from clients; such a one is not even started.
    """

    def __init__(
        self,
        upstreams: Sequence[Upstream],
        problems: Sequence[UpstreamProblem] = (),
        why_denied: Callable[[str], str] = lambda server: "",
    ) -> None:
        self._reads = {
            one.config.name: ResourceReads(one.config.name, one.requests, one.offerings) for one in upstreams
        }
        self._name_of = {one.config.server: one.config.name for one in upstreams}
        self._server_of = {one.config.name: one.config.server for one in upstreams}
        self._why_denied = why_denied
        self._left_out = {problem.name: problem for problem in problems if problem.is_fatal}

    def servers(self) -> Sequence[str]:
        return tuple(self._reads)

    async def list_all(self, max_wait_s: float) -> Sequence[ServerResources]:
        answers: dict[str, ServerResources] = {}

        async def list_one(name: str) -> None:
            try:
                answers[name] = await self.list(name, max_wait_s)
            except ToolError as failure:
                answers[name] = ServerResources(name, problem=failure.message.removeprefix(f"upstream {name} "))

        async with anyio.create_task_group() as group:
            for name in self._reads:
                group.start_soon(list_one, name)
        return [answers[name] for name in self._reads]

    async def list(self, server: str, max_wait_s: float, *, caller: ToolContext | None = None) -> ServerResources:
        return await self._of(server).list(max_wait_s, caller)

    async def read(
        self,
        server: str,
        uri: str,
        max_wait_s: float,
        *,
        meta: Mapping[str, Any] | None = None,
        caller: ToolContext | None = None,
    ) -> Mapping[str, Any]:
        return await self._of(server).read(uri, max_wait_s, meta or {}, caller)

    def _of(self, server: str) -> ResourceReads:
        """By its configured name, else by the part that names of its tools have of it. Raises `ToolError`."""
        name = server if server in self._reads else self._name_of.get(server, "")
        if (reads := self._reads.get(name)) is not None:
            if reason := self._why_denied(self._server_of[name]):
                raise ToolError(
                    ErrorCode.PERMISSION,
                    f"upstream {name} is denied by {reason}",
                    "Use another server, or ask the user to change that.",
                )
            return reads
        asked = make_visible(cut_middle(server, 100))
        if (problem := self._left_out.get(server)) is not None:
            raise ToolError(
                ErrorCode.NOT_FOUND,
                f"MCP server {asked!r} is not in use ({problem.reason_code}): {problem.message}",
                "Tell the user, who can fix its entry.",
            )
        names = list(self._reads)
        if not names:
            raise ToolError(
                ErrorCode.NOT_FOUND,
                f"there is no MCP server {asked!r}: none is configured",
                "The user can name servers with --upstreams FILE.",
            )
        near = nearest(server, names, most=1)
        hint = f"Did you mean {near[0]}? " if near else ""
        shown = ", ".join(names[:_NAMES_SHOWN])
        rest = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
        raise ToolError(ErrorCode.NOT_FOUND, f"there is no MCP server {asked!r}", f"{hint}Servers are: {shown}{rest}.")
