"""The resources of all upstreams, as `core.mcp_resources.McpResources`."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import anyio

from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError, cut_middle
from goat_mcp.core.mcp_resources import ServerResources
from goat_mcp.files.documents.visible_text import make_visible
from goat_mcp.upstreams.cache.resource_reads import ResourceReads
from goat_mcp.upstreams.config.upstream_files import UpstreamProblem
from goat_mcp.upstreams.upstream import Upstream

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
        self._reads = {one.config.name: ResourceReads(one.config.name, one.requests, one.offer) for one in upstreams}
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
                "Tell the user, who can mend its entry.",
            )
        names = list(self._reads)
        if not names:
            raise ToolError(
                ErrorCode.NOT_FOUND,
                f"there is no MCP server {asked!r}: none is configured",
                "The user can name servers with --upstreams FILE.",
            )
        near = difflib.get_close_matches(server[:100], names, n=1)
        hint = f"Did you mean {near[0]}? " if near else ""
        shown = ", ".join(names[:_NAMES_SHOWN])
        rest = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
        raise ToolError(ErrorCode.NOT_FOUND, f"there is no MCP server {asked!r}", f"{hint}Servers are: {shown}{rest}.")
