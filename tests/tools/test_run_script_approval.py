"""A call of a script that a person is asked about: the script waits, and goes on with the answer (R-PERM-4, DEF-3)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from goat_mcp.calls.permissions.approval import ALLOW_ONCE, DENY
from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.core.context import ToolContext
from goat_mcp.core.elicitation import Answer, Form, Reply
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.adapter import Adapter
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory
from tests.server.asking import accepts
from tests.tool_doubles import FakeTool, fake
from tests.tools.script_gateway import scripts

pytestmark = pytest.mark.anyio
SCRIPT = "await looks(n=1)\nprint('looked')\nawait changes(n=2)\nawait looks(n=3)\n'end'"


def tools() -> tuple[FakeTool, FakeTool]:
    return fake("looks", SideEffect.READ_ONLY), fake("changes", SideEffect.MUTATING)


@asynccontextmanager
async def process(folder: Path, *served: FakeTool) -> AsyncGenerator[Client]:
    """One of several processes that serve the same state directory over HTTP, as far as it knows; and a client."""
    gateway = Gateway(
        Settings.model_validate({"workspace": [folder], "catalog": {"toolsets": ["code"]}}),
        approval=Approval.ELICIT,
        state=StateDirectory(folder / "state"),
    )
    for tool in served:
        gateway.registry.register(tool)
    adapter = Adapter(gateway, "http")
    async with gateway.running(), anyio.create_task_group() as group:
        await group.start(adapter.run)
        async with Client(adapter.server, mode="2026-07-28", elicitation_callback=accepts(decision=DENY)) as client:
            yield client
        group.cancel_scope.cancel()


async def begin(client: Client, script: str = SCRIPT) -> types.InputRequiredResult:
    asked = await client.session.call_tool("run_script", {"script": script}, allow_input_required=True)
    assert isinstance(asked, types.InputRequiredResult), asked
    return asked


async def answer(client: Client, asked: types.InputRequiredResult, decision: str) -> types.CallToolResult:
    (key,) = asked.input_requests or {}
    done = await client.session.call_tool(
        "run_script",
        {"script": SCRIPT},
        input_responses={key: types.ElicitResult(action="accept", content={"decision": decision})},
        request_state=asked.request_state,
        allow_input_required=True,
    )
    assert isinstance(done, types.CallToolResult)
    return done


def text(result: types.CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text


async def test_the_script_goes_on_with_the_answer_and_makes_no_call_again(tmp_path: Path) -> None:
    looks, changes = tools()
    async with process(tmp_path, looks, changes) as client:
        asked = await begin(client)
        before = (list(looks.calls), list(changes.calls))
        done = await answer(client, asked, ALLOW_ONCE)

    assert before == ([{"n": 1}], [])
    assert (looks.calls, changes.calls) == ([{"n": 1}, {"n": 3}], [{"n": 2}])
    assert text(done) == "looked\nend"


async def test_a_replayed_answer_counts_once(tmp_path: Path) -> None:
    looks, changes = tools()
    async with process(tmp_path, looks, changes) as client:
        asked = await begin(client)
        await answer(client, asked, ALLOW_ONCE)
        with pytest.raises(MCPError, match="answered before"):
            await answer(client, asked, ALLOW_ONCE)

    assert (looks.calls, changes.calls) == ([{"n": 1}, {"n": 3}], [{"n": 2}])


async def test_a_refusal_reaches_the_script_as_an_exception(tmp_path: Path) -> None:
    looks, changes = tools()
    async with process(tmp_path, looks, changes) as client:
        done = await answer(client, await begin(client), DENY)

    assert done.is_error
    assert "line 3: RuntimeError: E_PERMISSION" in text(done)
    assert changes.calls == []


async def test_another_process_does_not_start_the_script_again_with_the_answer(tmp_path: Path) -> None:
    """Its earlier calls have been made: the answer would be one to a question that has not come yet."""
    here, there = tools(), tools()
    script = "await changes(n=2)\nawait looks(n=3)"  # the question is the first thing that happens
    async with process(tmp_path, *here) as one, process(tmp_path, *there) as other:
        asked = await begin(one, script)
        (key,) = asked.input_requests or {}
        with pytest.raises(MCPError) as lost:
            await other.session.call_tool(
                "run_script",
                {"script": script},
                input_responses={key: types.ElicitResult(action="accept", content={"decision": ALLOW_ONCE})},
                request_state=asked.request_state,
                allow_input_required=True,
            )

    assert lost.value.error.data["reason"] == "parked_call_lost"
    assert [tool.calls for tool in there] == [[], []]


async def test_the_host_that_saw_only_the_script_is_not_taken_to_have_asked(tmp_path: Path) -> None:
    _, changes = tools()
    forms: list[Form] = []

    async def declines(form: Form) -> Answer:
        forms.append(form)
        return Answer(Reply.DECLINED)

    async with scripts(tmp_path, changes) as s:  # approval: host
        failed = await s.failure("await changes(path='x')", ToolContext(call_id="c", ask=declines))

    assert "changes" in forms[0].message
    assert "E_PERMISSION" in failed
    assert changes.calls == []
