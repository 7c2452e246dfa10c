"""Small tools that tests call in place of real ones: they record, wait, fail or answer as told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import anyio

from goat_mcp.core.context import ToolContext
from goat_mcp.core.result import ToolResult, text_result
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.core.spec import Toolset, ToolSpec, risk_and_hints
from goat_mcp.core.tool import Access, OwnTool


def spec(
    name: str, side_effect: SideEffect = SideEffect.NONE, *, canonical_name: str = "", toolset: Toolset = "core"
) -> ToolSpec:
    risk, hints = risk_and_hints(side_effect)
    return ToolSpec(
        name=name,
        title=name,
        description=f"{name} for tests.",
        input_schema={"type": "object"},
        side_effect=side_effect,
        toolset=toolset,
        risk=risk,
        hints=hints,
        canonical_name=canonical_name,
    )


@dataclass(eq=False)
class FakeTool(OwnTool):
    """Stands in for a tool of this package: answers with `answer` (an exception is raised), after `release` is set if
    there is one."""

    spec: ToolSpec
    answer: ToolResult | Exception = field(default_factory=lambda: text_result("done"))
    touches: Access = field(default_factory=Access)
    release: anyio.Event | None = None
    started: anyio.Event = field(default_factory=anyio.Event)
    calls: list[Any] = field(default_factory=list[Any])

    def validate(self, arguments: Any) -> Any:
        return dict(arguments)

    def access(self, input: Any) -> Access:
        return self.touches

    async def execute(self, input: Any, ctx: ToolContext) -> ToolResult:
        self.calls.append(input)
        self.started.set()
        if self.release is not None:
            await self.release.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def fake(name: str, side_effect: SideEffect = SideEffect.NONE, **options: Any) -> FakeTool:
    return FakeTool(spec(name, side_effect), **options)
