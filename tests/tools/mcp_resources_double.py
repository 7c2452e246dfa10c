"""A few MCP servers' resources without any server, for the tests of the two tools that show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio

from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.resources import ServerResources


@dataclass
class FakeResources:
    """`contents` by URI: what a read answers with, or raises."""

    listed: Sequence[ServerResources] = ()
    contents: Mapping[str, Any] = field(default_factory=dict[str, Any])
    takes_s: float = 0.0
    asked: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    waits_s: list[float] = field(default_factory=list[float])
    metas: list[Any] = field(default_factory=list[Any])

    def servers(self) -> Sequence[str]:
        return [answer.server for answer in self.listed]

    async def list_all(self, max_wait_s: float) -> Sequence[ServerResources]:
        self.asked.append(("list",))
        self.waits_s.append(max_wait_s)
        await anyio.sleep(self.takes_s)
        return self.listed

    async def list(self, server: str, max_wait_s: float, *, caller: ToolContext | None = None) -> ServerResources:
        self.asked.append(("list", server))
        self.waits_s.append(max_wait_s)
        await anyio.sleep(self.takes_s)
        for answer in self.listed:
            if answer.server == server:
                return answer
        raise ToolError(ErrorCode.NOT_FOUND, f"there is no MCP server {server!r}")

    async def read(
        self,
        server: str,
        uri: str,
        max_wait_s: float,
        *,
        meta: Mapping[str, Any] | None = None,
        caller: ToolContext | None = None,
    ) -> Mapping[str, Any]:
        self.asked.append(("read", server, uri))
        self.waits_s.append(max_wait_s)
        self.metas.append(meta)
        await anyio.sleep(self.takes_s)
        answer = self.contents[uri]
        if isinstance(answer, Exception):
            raise answer
        return {"contents": answer}
