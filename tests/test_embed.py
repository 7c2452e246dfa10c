"""goat-mcp in another program: what its model is offered, and what its tool calls come back as."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from PIL import Image

from goat_mcp.calls.permissions.approval import ALLOW_ONCE
from goat_mcp.core.elicitation import Answer, Form, Reply
from goat_mcp.core.errors import ToolError
from goat_mcp.embed import CallProgress, EmbeddedTools, ToolMessages, open_tools
from goat_mcp.settings.settings import BrokenSettings

pytestmark = pytest.mark.anyio

WEATHER = Path(__file__).resolve().parents[1] / "examples" / "weather_stdio.py"
BOUND_S = 60


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    folder.mkdir()
    (folder / "notes.txt").write_text("one\ntwo\n")
    return folder


@pytest.fixture
async def tools(workspace: Path, tmp_path: Path) -> AsyncGenerator[EmbeddedTools]:
    settings = {"workspace": [str(workspace)], "mode": "acceptEdits", "permissions": {"allow": ["Bash"]}}
    async with open_tools(settings, state_directory=tmp_path / "state") as opened:
        yield opened


def tool_call(id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


async def run(tools: EmbeddedTools, *calls: dict[str, Any], **options: Any) -> ToolMessages:
    with anyio.fail_after(BOUND_S):
        return await tools.run(calls, **options)


def contents(turn: ToolMessages) -> list[str]:
    return [message["content"] for message in turn.messages]


async def test_the_catalog_is_what_a_model_is_offered(tools: EmbeddedTools) -> None:
    offered = await tools.definitions()

    assert [made["function"]["name"] for made in offered] == [tool.spec.name for tool in tools.gateway.catalog.tools()]
    (read,) = [made for made in offered if made["function"]["name"] == "Read"]
    assert read["type"] == "function"
    assert read["function"]["parameters"]["required"] == ["file_path"]


async def test_each_call_is_answered_in_the_order_it_came(tools: EmbeddedTools, workspace: Path) -> None:
    notes = str(workspace / "notes.txt")

    turn = await run(
        tools,
        tool_call("call_1", "Read", file_path=notes),
        tool_call("call_2", "Edit", file_path=notes, old_string="two", new_string="three"),
        tool_call("call_3", "Grep", pattern="three", output_mode="files_with_matches"),
        tool_call("call_4", "Bash", command="sleep 0.2; echo slow"),
        tool_call("call_5", "Glob", pattern="*.txt"),
    )

    assert [(message["role"], message["tool_call_id"]) for message in turn.messages] == [
        ("tool", f"call_{number}") for number in range(1, 6)
    ]
    texts = contents(turn)
    assert texts[0] == "1\tone\n2\ttwo"
    assert texts[1].startswith(f"Edited {notes}: 1 replacement")
    assert (texts[3].strip(), texts[4]) == ("slow", notes)
    assert (workspace / "notes.txt").read_text() == "one\nthree\n"
    assert turn.stopped_by is None


async def test_what_fails_is_told_in_text_and_harms_no_other_call(tools: EmbeddedTools, workspace: Path) -> None:
    broken = {"id": "call_2", "type": "function", "function": {"name": "Read", "arguments": '{"file_path": '}}

    turn = await run(
        tools,
        tool_call("call_1", "Read", file_path=str(workspace / "missing.txt")),
        broken,
        tool_call("call_3", "Nope"),
        tool_call("call_4", "Read", file_path=str(workspace / "notes.txt")),
    )

    first, second, third, fourth = contents(turn)
    assert first.startswith("Error: ") and "missing.txt" in first
    assert second.startswith("Error: function.arguments is not JSON") and second.endswith("[E_INPUT]")
    assert third.startswith("Error: tool not found: Nope")
    assert fourth == "1\tone\n2\ttwo"


async def test_a_call_without_an_id_runs_nothing(tools: EmbeddedTools, workspace: Path) -> None:
    anonymous = {"type": "function", "function": {"name": "Read", "arguments": "{}"}}

    with pytest.raises(ToolError, match=r"tool_calls\[1\] has no id"):
        await run(tools, tool_call("c", "Write", file_path=str(workspace / "new.txt"), content="x"), anonymous)

    assert not (workspace / "new.txt").exists()


async def test_a_picture_is_noted_not_lost(tools: EmbeddedTools, workspace: Path) -> None:
    image = io.BytesIO()
    Image.new("RGB", (4, 4), "red").save(image, "PNG")
    (workspace / "red.png").write_bytes(image.getvalue())

    turn = await run(tools, tool_call("c", "Read", file_path=str(workspace / "red.png")))

    assert "[image: image/png, " in contents(turn)[0]
    assert "a tool message holds text only]" in contents(turn)[0]


@pytest.mark.parametrize("reply", [Reply.ACCEPTED, Reply.DECLINED])
async def test_your_user_is_asked_and_a_refusal_stops_the_rest(workspace: Path, tmp_path: Path, reply: Reply) -> None:
    asked: list[str] = []

    async def ask(form: Form) -> Answer:
        asked.append(form.message)
        return Answer(reply, {form.questions[0].name: ALLOW_ONCE} if reply is Reply.ACCEPTED else {})

    async with open_tools({"workspace": [str(workspace)]}, ask=ask, state_directory=tmp_path / "state") as tools:
        turn = await run(
            tools,
            tool_call("c1", "Write", file_path=str(workspace / "new.txt"), content="x"),
            tool_call("c2", "Read", file_path=str(workspace / "notes.txt")),
        )

    assert [message.split(" (")[0] for message in asked] == ["Allow Write?"]
    assert (workspace / "new.txt").exists() is (reply is Reply.ACCEPTED)
    assert turn.interrupted is (reply is Reply.DECLINED)
    expected = "1\tone\n2\ttwo" if reply is Reply.ACCEPTED else "Error: not run: the batch was interrupted (the user"
    assert contents(turn)[1].startswith(expected)


async def test_without_anybody_to_ask_a_change_is_refused_with_the_rule_that_allows_it(
    workspace: Path, tmp_path: Path
) -> None:
    async with open_tools({"workspace": [str(workspace)]}, state_directory=tmp_path / "state") as tools:
        turn = await run(tools, tool_call("c", "Write", file_path=str(workspace / "new.txt"), content="x"))

    assert contents(turn)[0].startswith("Error: Write needs an approval")
    assert "permissions.allow: [Write]" in contents(turn)[0]
    assert not turn.interrupted


async def test_a_cancelled_turn_answers_every_call(tools: EmbeddedTools, workspace: Path) -> None:
    cancelled = anyio.Event()
    turns: list[ToolMessages] = []
    begun = workspace / "begun"
    os.mkfifo(begun)

    async def run_it() -> None:
        commands = (f"echo begun > {begun}; sleep 30", "echo never")
        calls = [tool_call(f"c{at}", "Bash", command=command) for at, command in enumerate(commands)]
        turns.append(await run(tools, *calls, cancelled=cancelled))

    with anyio.fail_after(BOUND_S):
        async with anyio.create_task_group() as group:
            group.start_soon(run_it)
            await anyio.to_thread.run_sync(begun.read_text, abandon_on_cancel=True)
            cancelled.set()

    assert turns[0].stopped_by == "cancelled"
    first, second = contents(turns[0])
    assert first.startswith("Error: operation cancelled while it ran\n")
    assert second.startswith("Error: operation cancelled\n")


async def test_a_single_call_comes_back_as_a_result(tools: EmbeddedTools, workspace: Path) -> None:
    result = await tools.call("Read", {"file_path": str(workspace / "notes.txt")})
    assert (result.text, result.is_error) == ("1\tone\n2\ttwo", False)


async def test_an_upstreams_tools_are_offered_and_run_too(workspace: Path, tmp_path: Path) -> None:
    servers = tmp_path / "servers.json"
    servers.write_text(json.dumps({"mcpServers": {"weather": {"command": sys.executable, "args": [str(WEATHER)]}}}))
    settings = {"workspace": [str(workspace)], "upstreams": [str(servers)], "permissions": {"allow": ["mcp__weather"]}}

    async with open_tools(settings, state_directory=tmp_path / "state") as tools:
        turn = await run(tools, tool_call("c", "mcp__weather__current_weather", town="Dunmere"))
        offered = [made["function"]["name"] for made in await tools.definitions()]

    assert "Dunmere" in contents(turn)[0] and not contents(turn)[0].startswith("Error: ")
    assert "mcp__weather__current_weather" in offered


async def test_settings_are_what_you_pass_and_nothing_else(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOAT_MCP_MODE", "bypassPermissions")

    async with open_tools({"workspace": [str(workspace)]}, state_directory=tmp_path / "state") as tools:
        assert tools.gateway.settings.mode == "default"

    with pytest.raises(BrokenSettings, match="no such setting; did you mean workspace"):
        async with open_tools({"workspce": ["."]}, state_directory=tmp_path / "state"):
            pass


async def test_what_your_own_code_raises_comes_out_as_it_is(workspace: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="mine"):
        async with open_tools({"workspace": [str(workspace)]}, state_directory=tmp_path / "state"):
            raise KeyError("mine")


async def test_the_progress_callback_hears_of_each_call_by_the_models_id(workspace: Path, tmp_path: Path) -> None:
    heard: list[CallProgress] = []

    async def note(report: CallProgress) -> None:
        heard.append(report)

    settings = {"workspace": [str(workspace)]}
    async with open_tools(settings, state_directory=tmp_path / "state", progress=note) as tools:
        await run(
            tools,
            tool_call("a", "Read", file_path="@notes.txt"),
            tool_call("b", "Read", file_path="@none.txt"),
            tool_call("c", "Read", file_path=5),
        )
        await tools.call("Glob", {"pattern": "*"})

    of_call = {id: [report for report in heard if report.call_id == id] for id in ("a", "b", "c", "")}
    messages = {id: [re.sub(r"[\d.]+ s$", "N s", report.message) for report in of_call[id]] for id in of_call}
    assert messages["a"] == ["Read started", "Read finished in N s"]
    assert messages["b"] == ["Read started", "Read failed after N s"]
    assert messages["c"] == []
    assert messages[""] == ["Glob started", "Glob finished in N s"]
    assert {report.tool for report in of_call[""]} == {"Glob"}


async def test_a_progress_callback_that_fails_costs_no_result(
    workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def broken(report: CallProgress) -> None:
        raise RuntimeError("no screen")

    settings = {"workspace": [str(workspace)]}
    async with open_tools(settings, state_directory=tmp_path / "state", progress=broken) as tools:
        result = await tools.call("Read", {"file_path": "@notes.txt"})

    assert "one" in result.text
    assert "no screen" in capsys.readouterr().err
