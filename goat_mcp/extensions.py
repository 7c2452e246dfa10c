"""User code wrapped around a call, onion style. Source: Goondan middleware."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from goat_mcp.core.context import ToolContext
from goat_mcp.core.result import ToolResult
from goat_mcp.core.spec import ToolSpec

CallNext = Callable[[Mapping[str, Any]], Awaitable[ToolResult]]
Extension = Callable[[ToolSpec, Mapping[str, Any], ToolContext, CallNext], Awaitable[ToolResult]]


@dataclass(frozen=True)
class Extensions:
    """Extensions in the order they wrap: the first is the outermost."""

    around: tuple[Extension, ...] = ()

    async def call(
        self, spec: ToolSpec, arguments: Mapping[str, Any], ctx: ToolContext, innermost: CallNext
    ) -> ToolResult:
        call_next = innermost
        for extension in reversed(self.around):
            call_next = partial(_wrap, extension, spec, ctx, call_next)
        return await call_next(arguments)


async def _wrap(
    extension: Extension, spec: ToolSpec, ctx: ToolContext, call_next: CallNext, arguments: Mapping[str, Any]
) -> ToolResult:
    return await extension(spec, arguments, ctx, call_next)
