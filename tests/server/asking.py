"""A tool that asks, and people who answer: for tests of the way from a call back to its client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import mcp_types as types
from mcp.client.context import ClientRequestContext

from goat_mcp.core.context import ToolContext
from goat_mcp.core.result import ToolResult, text_result
from goat_mcp.core.spec import ToolSpec
from goat_mcp.core.tool import Access
from tests.tool_doubles import spec

Body = Callable[[ToolContext], Awaitable[str]]


@dataclass(eq=False)
class AskingTool:
    """Runs `body` with the call's context and answers with the text it returns."""

    body: Body
    spec: ToolSpec = field(default_factory=lambda: spec("Asks"))

    def validate(self, arguments: Any) -> Any:
        return dict(arguments)

    def access(self, input: Any) -> Access:
        return Access()

    async def execute(self, input: Any, ctx: ToolContext) -> ToolResult:
        return text_result(await self.body(ctx))


@dataclass(eq=False)
class Person:
    """Answers every form alike and keeps what it was shown."""

    answer: types.ElicitResult
    shown: list[types.ElicitRequestFormParams] = field(default_factory=list[types.ElicitRequestFormParams])

    async def __call__(self, context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        assert isinstance(params, types.ElicitRequestFormParams)
        self.shown.append(params)
        return self.answer


def accepts(**content: Any) -> Person:
    return Person(types.ElicitResult(action="accept", content=content))
