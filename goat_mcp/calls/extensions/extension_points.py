"""Where extensions take part: around a call, and in each step (source: Goondan, middleware and "Tool Catalog").

Around a call each runs inside the one before. A bug of an extension names that extension. A refusal from below comes to
it as the result that its caller would get; a bug or an upstream's protocol error that only passed through it stays as
it was. A step is a client's `tools/list` or one turn of an agent. The catalog says what a client
may call; a step only hides some of that, or lists tools that the list leaves out.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
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


MAX_SESSIONS = 10_000


@dataclass
class StepView:
    """What an extension's `step` is given.

    `tools` are those that the step sees so far, by name; `others` those that could be shown: found by search, or hidden
    by an extension before this one. Changing them is what `hide` and `show` are for.
    """

    session_key: str
    principal: str
    is_agent: bool
    tools: dict[str, ToolSpec]
    others: dict[str, ToolSpec]
    hidden: set[str] = field(default_factory=set[str])

    def hide(self, *names: str) -> None:
        """Leave these out: a call of one in this step is refused as not in the catalog."""
        for name in names:
            if name in self.tools:
                self.others[name] = self.tools.pop(name)
            if name in self.others:
                self.hidden.add(name)

    def show(self, *names: str) -> None:
        """List these too. A name that the client's catalog does not have is passed over."""
        for name in names:
            if name in self.others:
                self.tools[name] = self.others.pop(name)
                self.hidden.discard(name)


Step = Callable[[StepView], object]


class Steps:
    """The steps of all extensions, in their order, and what each session's newest one has hidden.

    `on_bug` is called with a step that raises; what it had done by then counts for nothing.
    """

    def __init__(self, steps: Sequence[tuple[str, Step]], on_bug: Callable[[str, Exception], None]) -> None:
        self._steps = steps
        self._on_bug = on_bug
        self._hidden: OrderedDict[str, frozenset[str]] = OrderedDict()

    def begin(
        self, ctx: ToolContext, listed: Mapping[str, ToolSpec], others: Mapping[str, ToolSpec]
    ) -> Mapping[str, ToolSpec]:
        """The tools that a new step of this caller sees, in the order of the list."""
        view = StepView(ctx.session_key, ctx.principal, ctx.rights.depth > 0, dict(listed), dict(others))
        for name, step in self._steps:
            before = (dict(view.tools), dict(view.others), set(view.hidden))
            try:
                step(view)
            except Exception as bug:
                self._on_bug(name, bug)
                view.tools, view.others, view.hidden = before
        self._hidden[ctx.session_key] = frozenset(view.hidden)
        self._hidden.move_to_end(ctx.session_key)
        if len(self._hidden) > MAX_SESSIONS:
            self._hidden.popitem(last=False)
        return view.tools

    def has_begun(self, ctx: ToolContext) -> bool:
        """Whether this caller has had a step."""
        return ctx.session_key in self._hidden

    def hides(self, ctx: ToolContext, name: str) -> bool:
        """Whether the caller's newest step has hidden this tool."""
        return name in self._hidden.get(ctx.session_key, ())
