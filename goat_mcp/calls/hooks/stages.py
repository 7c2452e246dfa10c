"""The hook stages of the pipeline: what runs before a tool and after it, in a fixed order.

Python functions come first, in their order, then programs (`runner`). Hooks only tighten: an input that they rewrite
is validated and decided again, and a hook that fails before a call refuses it (R-HOOK-2, R-HOOK-3).
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ToolError
from goat_mcp.core.result import ToolResult
from goat_mcp.core.spec import ToolSpec


@dataclass(frozen=True, slots=True)
class HookOutcome:
    """What one hook said of a call, for the record: `pass`, `deny`, `ask`, `rewrite`, `failed: ...`."""

    hook: str
    result: str
    ms: float

    def record(self) -> dict[str, Any]:
        return {"hook": self.hook, "result": self.result, "ms": self.ms}


@dataclass(frozen=True)
class PreToolUse:
    """A hook's verdict on a call. `deny` is the reason; None lets it pass. `arguments` replaces the input.

    A denial that is marked `interrupt` also stops the calls that came together with this one. `ask` is a reason to
    ask the person, whatever the mode says. `problem` is the bug of a hook that failed, for the log.
    """

    deny: str | None = None
    interrupt: bool = False
    arguments: Mapping[str, Any] | None = None
    context: str = ""
    ask: str | None = None
    outcomes: tuple[HookOutcome, ...] = ()
    problem: Exception | None = None


@dataclass(frozen=True)
class PostToolUse:
    """The result as hooks left it. `stop` is the reason of one that wants nothing else begun, `problems` are bugs."""

    result: ToolResult
    stop: str | None = None
    problems: tuple[Exception, ...] = ()


PreHook = Callable[[ToolSpec, Mapping[str, Any], ToolContext], Awaitable[PreToolUse]]
PostHook = (
    Callable[[ToolSpec, Mapping[str, Any], ToolResult, ToolContext], Awaitable[ToolResult]]
    | Callable[[ToolSpec, ToolResult, ToolContext], Awaitable[ToolResult]]
)
"""Of three arguments: without the input."""
_WITH_INPUT = 4


class HookPrograms(Protocol):
    """The programs among a gateway's hooks, and those of imported files."""

    async def before(self, spec: ToolSpec, arguments: Mapping[str, Any], ctx: ToolContext) -> PreToolUse: ...

    async def after(
        self, spec: ToolSpec, arguments: Mapping[str, Any], result: ToolResult, ctx: ToolContext
    ) -> PostToolUse: ...


@dataclass(frozen=True)
class Hooks:
    """All hooks of a gateway: `before` each call, `after` a success, `after_failure` otherwise, then `programs`."""

    before: tuple[PreHook, ...] = ()
    after: tuple[PostHook, ...] = ()
    after_failure: tuple[PostHook, ...] = ()
    programs: HookPrograms | None = None

    def __bool__(self) -> bool:
        return bool(self.before or self.after or self.after_failure or self.programs)

    async def pre_tool_use(self, spec: ToolSpec, arguments: Mapping[str, Any], ctx: ToolContext) -> PreToolUse:
        """Run them in order; the first denial ends it, each sees the arguments the one before left.

        A `ToolError` that a function raises is its refusal, and passes.
        """
        so_far = PreToolUse()
        for hook in self.before:
            started_s = time.monotonic()
            try:
                verdict = await hook(spec, _left_by(so_far, arguments), ctx)
            except ToolError:
                raise
            except Exception as bug:
                verdict = PreToolUse(deny=f"hook {_name_of(hook)} failed", problem=bug)
            if not verdict.outcomes:
                verdict = replace(verdict, outcomes=(_outcome(hook, verdict, started_s),))
            so_far = merged(so_far, verdict)
            if so_far.deny is not None:
                return so_far
        if self.programs is not None:
            so_far = merged(so_far, await self.programs.before(spec, _left_by(so_far, arguments), ctx))
        return so_far

    async def post_tool_use(
        self, spec: ToolSpec, arguments: Mapping[str, Any], result: ToolResult, ctx: ToolContext
    ) -> PostToolUse:
        """Run those that fit the result. The call has had its effect: one that fails changes nothing of the result."""
        problems: list[Exception] = []
        for hook in self.after_failure if result.is_error else self.after:
            run: Any = hook
            try:
                result = await (run(spec, arguments, result, ctx) if _takes_input(hook) else run(spec, result, ctx))
            except Exception as bug:
                problems.append(bug)
        if self.programs is None:
            return PostToolUse(result, problems=tuple(problems))
        left = await self.programs.after(spec, arguments, result, ctx)
        return replace(left, problems=(*problems, *left.problems))


def merged(first: PreToolUse, then: PreToolUse) -> PreToolUse:
    """Two verdicts as one, `then` given with the arguments that `first` left."""
    return PreToolUse(
        deny=then.deny,
        interrupt=then.interrupt,
        arguments=then.arguments if then.arguments is not None else first.arguments,
        context="\n".join(part for part in (first.context, then.context) if part),
        ask=first.ask if first.ask is not None else then.ask,
        outcomes=(*first.outcomes, *then.outcomes),
        problem=then.problem,
    )


def _takes_input(hook: PostHook) -> bool:
    try:
        inspect.signature(hook).bind(*range(_WITH_INPUT))
    except TypeError:
        return False
    return True


def _left_by(verdict: PreToolUse, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    return verdict.arguments if verdict.arguments is not None else arguments


def _outcome(hook: PreHook, verdict: PreToolUse, started_s: float) -> HookOutcome:
    ms = round((time.monotonic() - started_s) * 1000, 3)
    if verdict.problem is not None:
        return HookOutcome(_name_of(hook), f"failed: {type(verdict.problem).__name__}", ms)
    return HookOutcome(_name_of(hook), verdict_word(verdict), ms)


def verdict_word(verdict: PreToolUse) -> str:
    """A verdict as one word."""
    if verdict.deny is not None:
        return "deny"
    if verdict.ask is not None:
        return "ask"
    return "rewrite" if verdict.arguments is not None else "pass"


def _name_of(hook: Any) -> str:
    return str(getattr(hook, "__qualname__", type(hook).__qualname__))
