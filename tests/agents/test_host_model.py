"""Agents that the client's own model runs, through sampling with real clients of both eras."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.client.context import ClientRequestContext

from goat_mcp.core.context import ToolContext
from goat_mcp.core.elicitation import Answer, Form, Reply
from tests.agents.scripted import BOUND_S, ScriptedModel, ground, says, use
from tests.server.asking import accepts
from tests.server.test_adapter import both_eras, connected, gateway

pytestmark = pytest.mark.anyio

WITH_TOOLS = types.SamplingCapability(tools=types.SamplingToolsCapability())
Content = types.TextContent | types.ToolUseContent
GLOB = types.ToolUseContent(type="tool_use", id="g", name="Glob", input={"pattern": "*.txt"})


@dataclass(eq=False)
class HostModel:
    """A client's model: replies in order, then says `done`."""

    replies: list[Sequence[Content]] = field(default_factory=list[Sequence[Content]])
    asked: list[types.CreateMessageRequestParams] = field(default_factory=list[types.CreateMessageRequestParams])

    async def __call__(
        self, context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResultWithTools:
        self.asked.append(params)
        content: list[Any] = [types.TextContent(type="text", text="done")]
        if self.replies:
            content = list(self.replies.pop(0))
        wants_tools = any(block.type == "tool_use" for block in content)
        return types.CreateMessageResultWithTools(
            role="assistant", content=content, model="host", stop_reason="toolUse" if wants_tools else "endTurn"
        )


async def run(folder: Path, mode: str, model: Any, *, fields: dict[str, Any] | None = None, **options: Any) -> Any:
    workspace = folder / "ws"
    workspace.mkdir(exist_ok=True)
    (workspace / "a.txt").write_text("hello\n")
    settings = options.pop("settings", {})
    capabilities = options.pop("sampling_capabilities", WITH_TOOLS)
    with anyio.fail_after(BOUND_S):
        async with connected(
            gateway(folder, workspace=[workspace], **settings),
            mode,
            sampling_callback=model,
            sampling_capabilities=capabilities,
            **options,
        ) as client:
            return await client.call_tool("Agent", {"description": "d", "prompt": "Do it.", **(fields or {})})


def text_of(result: Any) -> str:
    return "\n".join(block.text for block in result.content)


@both_eras
async def test_the_clients_own_model_runs_an_agent_with_tools(tmp_path: Path, mode: str) -> None:
    model = HostModel([[GLOB], [types.TextContent(type="text", text="One file.")]])

    result = await run(tmp_path, mode, model, fields={"model": "haiku"})

    assert text_of(result).splitlines()[0] == "One file."
    first, second = model.asked
    assert first.tools is not None and "Glob" in [tool.name for tool in first.tools]
    assert first.model_preferences is not None and first.model_preferences.hints is not None
    assert first.model_preferences.hints[0].name == "haiku"
    (answer,) = second.messages[-1].content_as_list
    assert isinstance(answer, types.ToolResultContent)
    assert [block.text for block in answer.content if block.type == "text"] == [str(tmp_path / "ws" / "a.txt")]


@both_eras
async def test_an_agent_ends_with_its_own_words_before_a_clients_rounds_run_out(tmp_path: Path, mode: str) -> None:
    model = HostModel([[GLOB.model_copy(update={"id": f"g{number}"})] for number in range(12)])

    result = await run(tmp_path, mode, model, fields={"max_turns": 11})

    assert not result.is_error
    in_this_era = 11 if mode == "legacy" else 9
    assert len(model.asked) == in_this_era
    assert "last turn" in (model.asked[-1].system_prompt or "")
    assert f"stopped after {in_this_era} turns" in text_of(result)


@both_eras
async def test_the_person_behind_the_client_approves_what_an_agent_does(tmp_path: Path, mode: str) -> None:
    path = str(tmp_path / "ws" / "new.txt")
    write = types.ToolUseContent(type="tool_use", id="w", name="Write", input={"file_path": path, "content": "x"})
    person = accepts(decision="allow_once")

    result = await run(tmp_path, mode, HostModel([[write]]), elicitation_callback=person)

    assert text_of(result).startswith("done")
    assert [form.message.splitlines()[0] for form in person.shown] == ["Allow Write? (mode default)"]
    assert await anyio.Path(path).read_text() == "x"


@both_eras
async def test_a_nested_agent_shares_the_clients_model(tmp_path: Path, mode: str) -> None:
    nested = types.ToolUseContent(
        type="tool_use",
        id="n",
        name="Agent",
        input={"description": "d", "prompt": "Inner.", "subagent_type": "explorer"},
    )
    model = HostModel([[nested], [types.TextContent(type="text", text="inner says")]])

    result = await run(tmp_path, mode, model, settings={"mode": "bypassPermissions"})

    assert text_of(result).startswith("done")
    assert len(model.asked) == 3
    answer = model.asked[2].messages[-1].content_as_list[0]
    assert isinstance(answer, types.ToolResultContent)
    assert "inner says" in str(answer.content)


async def test_a_client_that_refuses_is_an_error_that_names_the_setting(tmp_path: Path) -> None:
    async def refuses(context: ClientRequestContext, params: types.CreateMessageRequestParams) -> types.ErrorData:
        return types.ErrorData(code=-1, message="user said no")

    # A client of 2026-07-28 ends the call itself and tells the server nothing.
    result = await run(tmp_path, "legacy", refuses)

    assert result.is_error
    assert "agent.base_url" in text_of(result)


@both_eras
@pytest.mark.parametrize("capability", [None, types.SamplingCapability()], ids=["none", "without tools"])
async def test_without_any_engine_the_steps_are_told(tmp_path: Path, mode: str, capability: Any) -> None:
    model = None if capability is None else HostModel()

    result = await run(tmp_path, mode, model, sampling_capabilities=capability)

    assert result.is_error
    for step in ("[E_NOT_CONFIGURED]", "agent.base_url", "agent.command", "sampling with tools"):
        assert step in text_of(result)
    assert ("takes no tools" in text_of(result)) is (capability is not None)


@both_eras
async def test_an_agent_of_the_clients_model_cannot_be_left_alone(tmp_path: Path, mode: str) -> None:
    model = HostModel()

    result = await run(tmp_path, mode, model, fields={"run_in_background": True})

    assert "[E_INPUT]" in text_of(result)
    assert "only be asked while a call waits" in text_of(result)
    assert model.asked == []


async def test_a_type_that_wants_the_background_is_attended_where_there_is_none(tmp_path: Path) -> None:
    folder = tmp_path / "ws" / ".claude" / "agents"
    folder.mkdir(parents=True)
    (folder / "slow.md").write_text("---\nname: slow\ndescription: d\nbackground: true\n---\n")

    result = await run(tmp_path, "legacy", HostModel(), fields={"subagent_type": "slow"})

    assert text_of(result).startswith("done")


async def test_the_models_own_endpoint_goes_before_the_clients_model(tmp_path: Path) -> None:
    own, host = ScriptedModel([says("own")]), ScriptedModel([says("host")])
    async with ground(tmp_path, own) as on:
        ctx = ToolContext(call_id="c", session_key="stdio", host_model=host)
        result = await on.agent(ctx=ctx)

    assert result.text.startswith("own")
    assert host.requests == []


async def test_approvals_leave_the_last_round_for_the_answer(tmp_path: Path) -> None:
    asked: list[str] = []

    async def ask(form: Form) -> Answer:
        asked.append(form.message)
        return Answer(Reply.DECLINED)

    write = {"file_path": "@x.txt", "content": "x"}
    host = ScriptedModel([says("", use("Write", write, f"w{number}")) for number in range(20)])
    async with ground(tmp_path, mode="default") as on:
        ctx = ToolContext(call_id="c", session_key="stdio", host_model=host, ask=ask, client_waits_since_s=lambda: 0.0)
        result = await on.agent(ctx=ctx)

    # Nine rounds: a reply and an approval each, and the ninth is the last reply.
    assert (len(host.requests), len(asked)) == (5, 4)
    assert "last turn" in host.requests[-1].system
    assert not result.is_error


async def test_many_approvals_of_one_turn_leave_the_last_round_too(tmp_path: Path) -> None:
    asked: list[str] = []

    async def ask(form: Form) -> Answer:
        asked.append(form.message)
        return Answer(Reply.UNANSWERED)

    writes = [use("Write", {"file_path": f"@{number}.txt", "content": "x"}, f"w{number}") for number in range(12)]
    host = ScriptedModel([says("", *writes)])
    async with ground(tmp_path, mode="default") as on:
        ctx = ToolContext(call_id="c", session_key="stdio", host_model=host, ask=ask, client_waits_since_s=lambda: 0.0)
        await on.agent(ctx=ctx)

    assert (len(asked), len(host.requests)) == (7, 2)
    assert "last turn" in host.requests[1].system
