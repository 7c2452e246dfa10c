"""What code around a call sees of calls that run nothing: unknown names, and refusals as results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.calls.extensions import CallNext
from goat_mcp.calls.hooks import Hooks, PreToolUse
from goat_mcp.calls.permissions.mode import Mode
from goat_mcp.calls.permissions.permission import Permission
from goat_mcp.calls.permissions.session_modes import SessionModes
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError, UpstreamError
from goat_mcp.core.redaction import Redactor
from goat_mcp.core.result import ToolResult, text_result
from goat_mcp.core.rights import Rights
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.core.spec import ToolSpec
from tests.calls.test_pipeline import CTX, audit_lines, pipeline_over
from tests.tool_doubles import FakeTool, fake

pytestmark = pytest.mark.anyio


class Watching:
    """A layer that notes what it sees, and answers for names that nobody has if it has an `answer`."""

    def __init__(self, answer: ToolResult | None = None) -> None:
        self.answer = answer
        self.seen: list[tuple[str, bool, str | None]] = []

    async def __call__(
        self, spec: ToolSpec, arguments: Mapping[str, Any], ctx: ToolContext, call_next: CallNext
    ) -> ToolResult:
        if self.answer is not None and not spec.is_known:
            return self.answer
        result = await call_next(arguments)
        self.seen.append((spec.name, spec.is_known, result.error_code))
        return result


async def test_a_call_of_an_unknown_name_goes_through_the_layers(tmp_path: Path) -> None:
    outer, inner = Watching(), Watching()

    result = await pipeline_over(tmp_path, fake("Read"), layers=(outer, inner)).call("Raed", {"a": 1}, CTX)

    assert outer.seen == inner.seen == [("Raed", False, "E_TOOL_NOT_FOUND")]
    assert result == await pipeline_over(tmp_path, fake("Read")).call("Raed", {"a": 1}, CTX)
    assert audit_lines(tmp_path)[-1]["error_code"] == "E_TOOL_NOT_FOUND"


async def test_a_layer_may_answer_for_a_name_that_nobody_has(tmp_path: Path) -> None:
    layer = Watching(text_result("try Read"))

    result = await pipeline_over(tmp_path, fake("Read"), layers=(layer,)).call("Raed", {}, CTX)

    assert (result.text, result.is_error) == ("try Read", False)


async def test_a_tool_that_this_caller_may_not_see_is_unknown_to_the_layers_too(tmp_path: Path) -> None:
    layer, tool = Watching(), fake("Write")
    ctx = ToolContext(call_id="c", rights=Rights(allowed=frozenset({"Read"})))

    await pipeline_over(tmp_path, tool, layers=(layer,)).call("Write", {}, ctx)

    assert layer.seen == [("Write", False, "E_TOOL_NOT_IN_CATALOG")]
    assert tool.calls == []


class Strict(FakeTool):
    def validate(self, arguments: Any) -> Any:
        raise ToolError(ErrorCode.INPUT, "path: the value sk-live-canary is wrong")


async def refuse(spec: ToolSpec, arguments: Mapping[str, Any], ctx: ToolContext) -> PreToolUse:
    return PreToolUse(deny="not today")


@pytest.mark.parametrize(
    ("tool", "options", "code"),
    [
        (Strict(fake("Write").spec), {}, "E_INPUT"),
        (
            fake("Write", SideEffect.MUTATING),
            {"permission": Permission(modes=SessionModes(Mode.PLAN))},
            "E_PLAN_MODE",
        ),
        (fake("Write"), {"hooks": Hooks(before=(refuse,))}, "E_HOOK_DENIED"),
    ],
    ids=["arguments", "a rule or mode", "a hook"],
)
async def test_a_refusal_comes_to_the_layers_as_the_result_that_its_caller_gets(
    tool: FakeTool, options: dict[str, Any], code: str, tmp_path: Path
) -> None:
    outer, inner = Watching(), Watching()
    redactor = Redactor(["sk-live-canary"])

    result = await pipeline_over(tmp_path, tool, layers=(outer, inner), redactor=redactor, **options).call(
        "Write", {}, CTX
    )

    assert outer.seen == inner.seen == [("Write", True, code)]
    assert result == await pipeline_over(tmp_path, tool, redactor=redactor, **options).call("Write", {}, CTX)
    assert "canary" not in result.text


async def test_a_refusal_of_an_inner_layer_is_a_result_for_the_outer_one(tmp_path: Path) -> None:
    outer = Watching()

    async def inner(spec: ToolSpec, arguments: Mapping[str, Any], ctx: ToolContext, call_next: CallNext) -> ToolResult:
        raise ToolError(ErrorCode.PERMISSION, "closed on Sundays")

    await pipeline_over(tmp_path, fake("Read"), layers=(outer, inner)).call("Read", {}, CTX)

    assert outer.seen == [("Read", True, "E_PERMISSION")]


async def test_an_upstreams_protocol_error_still_passes_through_the_layers(tmp_path: Path) -> None:
    tool = fake("mcp__x__y", answer=UpstreamError(-32050, "custom"))

    with pytest.raises(UpstreamError):
        await pipeline_over(tmp_path, tool, layers=(Watching(),)).call("mcp__x__y", {}, CTX)
