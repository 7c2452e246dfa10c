"""User code wrapped around a call, onion style. Source: Goondan middleware.

What an extension raises is told apart from what came through it: a bug of its own names it, and nothing else does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ToolError, UpstreamError
from goat_mcp.core.result import ToolResult
from goat_mcp.core.spec import ToolSpec

CallNext = Callable[[Mapping[str, Any]], Awaitable[ToolResult]]
Extension = Callable[[ToolSpec, Mapping[str, Any], ToolContext, CallNext], Awaitable[ToolResult]]


class ExtensionFailed(Exception):
    """An extension has a bug. `__cause__` is what it raised."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"extension {name}: {problem}")
        self.name = name


@dataclass(frozen=True)
class Extensions:
    """Extensions in the order they wrap: the first is the outermost."""

    around: tuple[Extension, ...] = ()

    def around_call(self, spec: ToolSpec, ctx: ToolContext, innermost: CallNext) -> CallNext:
        """The call with all extensions around it. Raises what `innermost` raises, `ToolError` and `ExtensionFailed`."""
        call_next = innermost
        for extension in reversed(self.around):
            call_next = _Layer(extension, spec, ctx, call_next).call
        return call_next


class _Layer:
    """One extension around one call. `passed` is what the layers below raised, so that it can go on unchanged."""

    __slots__ = ("_below", "_ctx", "_extension", "_spec", "passed")

    def __init__(self, extension: Extension, spec: ToolSpec, ctx: ToolContext, below: CallNext) -> None:
        self._extension = extension
        self._spec = spec
        self._ctx = ctx
        self._below = below
        self.passed: BaseException | None = None

    async def call(self, arguments: Mapping[str, Any]) -> ToolResult:
        try:
            result: Any = await self._extension(self._spec, arguments, self._ctx, self._call_below)
        except (ToolError, UpstreamError, asyncio.CancelledError, KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as problem:  # SystemExit too: it would end the server
            if problem is self.passed:
                raise
            raise ExtensionFailed(self._name, f"{type(problem).__name__}: {problem}") from problem
        if not isinstance(result, ToolResult):
            raise ExtensionFailed(self._name, f"it returned {type(result).__name__}, not a ToolResult")
        return result

    async def _call_below(self, arguments: Mapping[str, Any]) -> ToolResult:
        try:
            return await self._below(arguments)
        except BaseException as problem:
            self.passed = problem
            raise

    @property
    def _name(self) -> str:
        extension: Any = self._extension
        return str(getattr(extension, "name", None) or getattr(extension, "__qualname__", type(extension).__name__))
