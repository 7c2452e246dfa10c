"""An approval that another process has to take: once, for the same call, tool and person (R-PERM-4, PM-04)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from goat_mcp.calls.permissions.approval import ALLOW_ONCE, ALLOW_SESSION, DENY
from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.adapter import Adapter
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory
from tests.server.asking import accepts
from tests.tool_doubles import FakeTool, fake

pytestmark = pytest.mark.anyio
YES = types.ElicitResult(action="accept", content={"decision": ALLOW_ONCE})


@asynccontextmanager
async def process(folder: Path, tool: FakeTool, *, suspended_for_s: float = 600.0) -> AsyncGenerator[Client]:
    """One of several processes that serve the same state directory over HTTP, as far as it knows; and a client."""
    gateway = Gateway(
        Settings.model_validate({"workspace": [folder]}),
        approval=Approval.ELICIT,
        state=StateDirectory(folder / "state"),
    )
    gateway.registry.register(tool)
    adapter = Adapter(gateway, "http", suspended_for_s=suspended_for_s)
    async with gateway.running(), anyio.create_task_group() as group:
        await group.start(adapter.run)
        async with Client(adapter.server, mode="2026-07-28", elicitation_callback=accepts(decision=DENY)) as client:
            yield client
        group.cancel_scope.cancel()


def changing(**more: Any) -> FakeTool:
    return fake("mcp__it__changes", SideEffect.MUTATING, **more)


async def ask(client: Client, **arguments: Any) -> types.InputRequiredResult:
    asked = await client.session.call_tool("mcp__it__changes", arguments, allow_input_required=True)
    assert isinstance(asked, types.InputRequiredResult)
    return asked


async def answer(
    client: Client, asked: types.InputRequiredResult, reply: types.ElicitResult = YES, **arguments: Any
) -> types.CallToolResult | types.InputRequiredResult:
    (key,) = asked.input_requests or {}
    return await client.session.call_tool(
        "mcp__it__changes",
        arguments,
        input_responses={key: reply},
        request_state=asked.request_state,
        allow_input_required=True,
    )


async def two(stack: AsyncExitStack, folder: Path, first: FakeTool, second: FakeTool) -> tuple[Client, Client]:
    return await stack.enter_async_context(process(folder, first)), await stack.enter_async_context(
        process(folder, second)
    )


async def test_the_answer_may_come_to_another_process_and_counts_once(tmp_path: Path) -> None:
    here, there = changing(), changing()
    async with AsyncExitStack() as stack:
        one, other = await two(stack, tmp_path, here, there)
        asked = await ask(one, path="x")

        done = await answer(other, asked, path="x")

        assert isinstance(done, types.CallToolResult) and not done.is_error
        for again in (one, other):
            with pytest.raises(MCPError, match="answered before"):
                await answer(again, asked, path="x")
    assert (here.calls, there.calls) == ([], [{"path": "x"}])


async def test_answered_where_it_was_asked_it_is_used_up_everywhere(tmp_path: Path) -> None:
    here, there = changing(), changing()
    async with AsyncExitStack() as stack:
        one, other = await two(stack, tmp_path, here, there)
        asked = await ask(one)
        await answer(one, asked)

        with pytest.raises(MCPError, match="answered before"):
            await answer(other, asked)
    assert (here.calls, there.calls) == ([{}], [])


async def test_two_answers_at_once_let_one_call_run(tmp_path: Path) -> None:
    here, there = changing(), changing()
    refused: list[str] = []

    async def try_it(client: Client, asked: types.InputRequiredResult) -> None:
        try:
            await answer(client, asked)
        except MCPError as error:
            refused.append(error.message)

    async with AsyncExitStack() as stack:
        one, other = await two(stack, tmp_path, here, there)
        asked = await ask(one)
        async with anyio.create_task_group() as group:
            for client in (one, other, one, other):
                group.start_soon(try_it, client, asked)

    assert len(here.calls) + len(there.calls) == 1 and len(refused) == 3


# ERA-5
@pytest.mark.parametrize("tampered", ["arguments", "state"])
async def test_it_is_good_for_the_arguments_it_was_asked_about_only(tmp_path: Path, tampered: str) -> None:
    here, there = changing(), changing()
    async with AsyncExitStack() as stack:
        one, other = await two(stack, tmp_path, here, there)
        asked = await ask(one, path="x")
        if tampered == "state":
            asked = asked.model_copy(update={"request_state": (asked.request_state or "")[:-4] + "AAAA"})

        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await answer(other, asked, path="y" if tampered == "arguments" else "x")
    assert (here.calls, there.calls) == ([], [])


async def test_it_expires(tmp_path: Path) -> None:
    here, there = changing(), changing()
    async with process(tmp_path, here, suspended_for_s=0.1) as one, process(tmp_path, there) as other:
        asked = await ask(one)
        await anyio.sleep(0.2)  # the time it was good for

        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await answer(other, asked)
    assert (here.calls, there.calls) == ([], [])


async def test_a_tool_that_was_changed_meanwhile_is_asked_about_again(tmp_path: Path) -> None:
    changed = changing()
    changed.spec = replace(changed.spec, description="Does something else now.")
    here = changing()
    async with AsyncExitStack() as stack:
        one, other = await two(stack, tmp_path, here, changed)

        again = await answer(other, await ask(one))

    assert isinstance(again, types.InputRequiredResult)
    assert (here.calls, changed.calls) == ([], [])


async def test_a_no_is_a_no_in_another_process(tmp_path: Path) -> None:
    here, there = changing(), changing()
    async with AsyncExitStack() as stack:
        one, other = await two(stack, tmp_path, here, there)

        refused = await answer(other, await ask(one), types.ElicitResult(action="decline"))

    assert isinstance(refused, types.CallToolResult) and refused.is_error
    assert "refused" in str(refused.content) and there.calls == []


async def test_a_choice_that_was_not_offered_is_none(tmp_path: Path) -> None:
    there = changing()
    async with AsyncExitStack() as stack:
        one, other = await two(stack, tmp_path, changing(), there)
        forged = types.ElicitResult(action="accept", content={"decision": "bypass"})

        refused = await answer(other, await ask(one), forged)

    assert isinstance(refused, types.CallToolResult) and refused.is_error and there.calls == []


async def test_allowed_for_the_session_holds_for_the_next_call(tmp_path: Path) -> None:
    there = changing()
    async with AsyncExitStack() as stack:
        one, other = await two(stack, tmp_path, changing(), there)
        granted = types.ElicitResult(action="accept", content={"decision": ALLOW_SESSION})

        await answer(other, await ask(one), granted)
        result = await other.session.call_tool("mcp__it__changes", {"path": "y"}, allow_input_required=True)

    assert isinstance(result, types.CallToolResult) and len(there.calls) == 2
