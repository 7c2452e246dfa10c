"""The hook stages of the pipeline: what runs before a tool and after it, in a fixed order.

Hooks are Python callables here. They only tighten: an input they rewrite is validated and decided again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from goat_mcp.core.context import ToolContext
from goat_mcp.core.result import ToolResult
from goat_mcp.core.spec import ToolSpec


@dataclass(frozen=True)
class PreToolUse:
    """A hook's verdict on a call. `deny` is the reason; None lets it pass. `arguments` replaces the input.

    A denial that is marked `interrupt` also stops the calls that came together with this one.
    """

    deny: str | None = None
    interrupt: bool = False
    arguments: Mapping[str, Any] | None = None
    context: str = ""


PreHook = Callable[[ToolSpec, Mapping[str, Any], ToolContext], Awaitable[PreToolUse]]
PostHook = Callable[[ToolSpec, ToolResult, ToolContext], Awaitable[ToolResult]]


@dataclass(frozen=True)
class Hooks:
    """All hooks of a gateway: `before` each call, `after` a success, `after_failure` otherwise."""

    before: tuple[PreHook, ...] = ()
    after: tuple[PostHook, ...] = ()
    after_failure: tuple[PostHook, ...] = ()

    async def pre_tool_use(self, spec: ToolSpec, arguments: Mapping[str, Any], ctx: ToolContext) -> PreToolUse:
        """Run them in order; the first denial ends it, each sees the arguments the one before left."""
        context: list[str] = []
        changed: Mapping[str, Any] | None = None
        for hook in self.before:
            verdict = await hook(spec, changed if changed is not None else arguments, ctx)
            if verdict.deny is not None:
                return verdict
            changed = verdict.arguments if verdict.arguments is not None else changed
            if verdict.context:
                context.append(verdict.context)
        return PreToolUse(arguments=changed, context="\n".join(context))

    async def post_tool_use(self, spec: ToolSpec, result: ToolResult, ctx: ToolContext) -> ToolResult:
        for hook in self.after_failure if result.is_error else self.after:
            result = await hook(spec, result, ctx)
        return result
