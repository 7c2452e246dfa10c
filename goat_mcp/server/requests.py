"""How the handlers of requests other than tool calls reach the client behind one: the adapter provides it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeVar

import mcp_types as types

from goat_mcp.core.context import ToolContext
from goat_mcp.core.result import ToolResult
from goat_mcp.server.client_channel import Context

AnswerT = TypeVar("AnswerT")
Work = Callable[[ToolContext], Awaitable[ToolResult]]


class MayAnswer(Protocol):
    """The params of a request that may come again with answers."""

    @property
    def input_responses(self) -> Mapping[str, Any] | None: ...

    @property
    def request_state(self) -> str | None: ...


class CalledTool(MayAnswer, Protocol):
    """The params of `tools/call`."""

    @property
    def name(self) -> str: ...

    @property
    def arguments(self) -> Mapping[str, Any] | None: ...


class Requests(Protocol):
    """One kind of transport's requests."""

    async def converse(self, ctx: Context, params: MayAnswer, work: Work) -> ToolResult | types.InputRequiredResult:
        """What the work returns; or a question, where the client has to come back with the answer.

        Raises `MCPError` for what an upstream answered as an error of its own.
        """
        ...

    async def relayed(self, outcome: Awaitable[AnswerT]) -> AnswerT:
        """What comes of it. Raises like `converse`."""
        ...

    def context(self, ctx: Context) -> ToolContext:
        """A request that is answered at once, as what runs in it sees it."""
        ...

    def reader(self, ctx: Context) -> ToolContext:
        """Who asks, for what needs no more."""
        ...
