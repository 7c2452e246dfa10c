"""What Python functions that run after a call are given: its input, and the model's own id beside ours."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from goat_mcp.agents.tool_uses import read_tool_uses
from goat_mcp.calls.hooks import Hooks, PreToolUse
from goat_mcp.calls.hooks.runner import with_output
from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.model import ModelReply
from goat_mcp.core.result import ToolResult, text_result
from goat_mcp.core.spec import ToolSpec
from goat_mcp.embed import open_tools
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.adapter import Adapter
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory
from tests.calls.test_pipeline import CTX, pipeline_over
from tests.tool_doubles import fake

pytestmark = pytest.mark.anyio


class Seen:
    """Notes the input and ids of each call."""

    def __init__(self) -> None:
        self.inputs: list[Mapping[str, Any]] = []
        self.contexts: list[ToolContext] = []

    async def __call__(
        self, spec: ToolSpec, arguments: Mapping[str, Any], result: ToolResult, ctx: ToolContext
    ) -> ToolResult:
        self.inputs.append(arguments)
        self.contexts.append(ctx)
        return result


async def test_a_function_after_a_call_gets_the_input_as_it_ran(tmp_path: Path) -> None:
    async def rewrite(spec: ToolSpec, arguments: Mapping[str, Any], ctx: ToolContext) -> PreToolUse:
        return PreToolUse(arguments={"city": "Oslo"})

    seen, failed = Seen(), Seen()
    hooks = Hooks(before=(rewrite,), after=(seen,), after_failure=(failed,))
    broken = fake("Broken", answer=ToolError(ErrorCode.NOT_FOUND, "gone"))
    pipeline = pipeline_over(tmp_path, fake("Weather"), broken, hooks=hooks)

    await pipeline.call("Weather", {"city": "Bergen"}, CTX)
    await pipeline.call("Broken", {}, CTX)

    assert (seen.inputs, failed.inputs) == ([{"city": "Oslo"}], [{"city": "Oslo"}])


async def test_a_function_of_three_arguments_still_runs(tmp_path: Path) -> None:
    async def after(spec: ToolSpec, result: ToolResult, ctx: ToolContext) -> ToolResult:
        return text_result(f"{spec.name}: {result.text}")

    result = await pipeline_over(tmp_path, fake("Read"), hooks=Hooks(after=(after,))).call("Read", {}, CTX)

    assert result.text == "Read: done"


async def test_what_a_hook_shows_in_place_of_a_result_leaves_the_calls_task_known() -> None:
    started = text_result("Task started: abc", facts={"task_id": "abc"}, task_id="abc")

    shown = with_output(started, "It works in the background.")

    assert shown is not None and (shown.text, shown.facts, shown.task_id) == (
        "It works in the background.",
        None,
        "abc",
    )


async def test_in_your_program_hooks_see_the_models_id_and_its_message(tmp_path: Path) -> None:
    seen = Seen()
    (tmp_path / "ws").mkdir()
    call = {"id": "call_0", "type": "function", "function": {"name": "Glob", "arguments": json.dumps({"pattern": "*"})}}
    message = {"role": "assistant", "content": "I look.", "tool_calls": [call]}

    async with open_tools(
        {"workspace": [str(tmp_path / "ws")]}, hooks=Hooks(after=(seen,)), state_directory=tmp_path / "state"
    ) as tools:
        await tools.run(message["tool_calls"], message=message)
        await tools.run([call])
        await tools.call("Glob", {"pattern": "*"})

    assert [ctx.model_call_id for ctx in seen.contexts] == ["call_0", "call_0", ""]
    assert len({ctx.call_id for ctx in seen.contexts}) == 3
    assert [ctx.message for ctx in seen.contexts] == [
        message,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        None,
    ]


async def test_over_mcp_hooks_see_the_id_that_the_host_passes_on(tmp_path: Path) -> None:
    seen = Seen()
    (tmp_path / "ws").mkdir()
    settings = Settings.model_validate({"workspace": [str(tmp_path / "ws")]})
    gateway = Gateway(
        settings, approval=Approval.HOST, hooks=Hooks(after=(seen,)), state=StateDirectory(tmp_path / "state")
    )
    async with gateway.running(), Client(Adapter(gateway, "stdio").server) as client:
        await client.call_tool("Glob", {"pattern": "*"}, meta={"claudecode/toolUseId": "toolu_1"})  # type: ignore[typeddict-unknown-key]
        await client.call_tool("Glob", {"pattern": "*"})

    assert [ctx.model_call_id for ctx in seen.contexts] == ["toolu_1", ""]


def test_an_agents_calls_have_the_ids_as_its_model_gave_them_though_it_repeats_them() -> None:
    block: dict[str, Any] = {"type": "tool_use", "id": "call_0", "name": "Read", "input": {}}

    first, second = read_tool_uses(ModelReply(content=(block, block), stop_reason="toolUse"), set())

    assert [first.given_id, second.given_id] == ["call_0", "call_0"]
    assert first.id != second.id
