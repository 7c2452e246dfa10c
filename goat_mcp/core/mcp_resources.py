"""The resources of other MCP servers, as tools see them. The client of those servers implements `McpResources`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from goat_mcp.core.context import ToolContext


@dataclass(frozen=True, slots=True)
class ServerResources:
    """What one server lists: wire entries as they came, each with a `uri` or `uriTemplate` that is text.

    `problem` says in words why that is not all of it, or nothing; empty if nothing is wrong.
    """

    server: str
    resources: tuple[Mapping[str, Any], ...] = ()
    templates: tuple[Mapping[str, Any], ...] = ()
    problem: str = ""


class McpResources(Protocol):
    """Servers are named as the user configured them; `server` may also be the part that tool names have of it."""

    def servers(self) -> Sequence[str]:
        """In the order of the configuration."""
        ...

    async def list_all(self, max_wait_s: float) -> Sequence[ServerResources]:
        """Every server's resources, in that order. A server that fails or is slow costs the others nothing."""
        ...

    async def list(self, server: str, max_wait_s: float, *, caller: ToolContext | None = None) -> ServerResources:
        """One server's resources. If it wants a login first, the client behind `caller` may be asked for one.

        Raises `ToolError`: NOT_FOUND for a server nobody knows, else why nothing came.
        """
        ...

    async def read(
        self,
        server: str,
        uri: str,
        max_wait_s: float,
        *,
        meta: Mapping[str, Any] | None = None,
        caller: ToolContext | None = None,
    ) -> Mapping[str, Any]:
        """The wire result, whose `contents` is a list of objects. `meta` passes to the server; `caller` as in `list`.

        Raises `ToolError`, and `UpstreamError` for the server's own refusal.
        """
        ...
