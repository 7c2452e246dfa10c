"""Extensions around a call, each inside the one before. Source: Goondan middleware.

A bug of an extension names that extension. A refusal from below comes to it as the result that its caller would get;
a bug or an upstream's protocol error that only passed through it stays as it was.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
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


def wrapped(
    extensions: Sequence[Extension],
    spec: ToolSpec,
    ctx: ToolContext,
    innermost: CallNext,
    refused: Callable[[ToolError], ToolResult],
) -> CallNext:
    """`innermost` with the extensions around it, the first outermost. `refused` makes a result of a refusal.

    It raises what `innermost` raises but for `ToolError`, a `ToolError` of the first extension, and `ExtensionFailed`.
    """
    for extension in reversed(extensions):
        innermost = _Layer(extension, spec, ctx, innermost, refused).call
    return innermost


class _Layer:
    """One extension around one call. `passed` is what the layers below raised, so that it can go on unchanged."""

    __slots__ = ("_below", "_ctx", "_extension", "_refused", "_spec", "passed")

    def __init__(
        self,
        extension: Extension,
        spec: ToolSpec,
        ctx: ToolContext,
        below: CallNext,
        refused: Callable[[ToolError], ToolResult],
    ) -> None:
        self._extension = extension
        self._spec = spec
        self._ctx = ctx
        self._below = below
        self._refused = refused
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
        except ToolError as refusal:
            return self._refused(refusal)
        except BaseException as problem:
            self.passed = problem
            raise

    @property
    def _name(self) -> str:
        extension: Any = self._extension
        return str(getattr(extension, "name", None) or getattr(extension, "__qualname__", type(extension).__name__))
