"""A stateless client's call whose upstream asks: the state it gets is good once, for that call and process (ERA-5)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import anyio
import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.adapter import Adapter
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory
from tests.e2e.conftest import upstream_file
from tests.e2e.upstream_launch import ERAS, listening
from tests.server.asking import accepts

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]
every_era = pytest.mark.parametrize("era", ["old", "new"])
DAY = types.ElicitResult(action="accept", content={"day": "Tuesday"})


@asynccontextmanager
async def process(folder: Path, url: str, transport: Literal["http", "stdio"] = "http") -> AsyncGenerator[Client]:
    """One of several processes that serve the same state directory by this transport, as far as it knows; and a
    client."""
    file = upstream_file(folder / "upstreams.json", up={"url": url})
    gateway = Gateway(
        Settings.model_validate({"workspace": [folder], "mode": "bypassPermissions", "upstreams": [file]}),
        approval=Approval.DENY,
        state=StateDirectory(folder / "state"),
    )
    adapter = Adapter(gateway, transport)
    async with gateway.running(), anyio.create_task_group() as group:
        await group.start(adapter.run)
        async with Client(adapter.server, mode="2026-07-28", elicitation_callback=accepts(day="Monday")) as client:
            yield client
        group.cancel_scope.cancel()


async def ask(client: Client) -> types.InputRequiredResult:
    asked = await client.session.call_tool("mcp__up__book", {"room": 1}, allow_input_required=True)
    assert isinstance(asked, types.InputRequiredResult)
    return asked


async def answer(
    client: Client,
    asked: types.InputRequiredResult,
    name: str = "mcp__up__book",
    state: str | None = None,
    **other: Any,
) -> str:
    (key,) = asked.input_requests or {}
    result = await client.session.call_tool(
        name,
        {"room": 1, **other},
        input_responses={key: DAY},
        request_state=state or asked.request_state,
        allow_input_required=True,
    )
    assert isinstance(result, types.CallToolResult)
    return text_of(result)


def text_of(result: types.CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text


async def calls_of_the_upstream(client: Client) -> int:
    """This one included."""
    return int(text_of(await client.call_tool("mcp__up__plain", {})).split()[0])


@every_era
async def test_the_answer_counts_once_and_only_for_the_call_that_was_asked_about(tmp_path: Path, era: str) -> None:
    with listening("asking", ERAS[era]) as url:
        async with process(tmp_path, url) as client:
            asked = await ask(client)
            state = asked.request_state
            assert state is not None
            refused: list[str] = []
            others: list[dict[str, Any]] = [{"state": state[:-4] + "AAAA"}, {"room": 2}, {"name": "mcp__up__pay"}]
            for wrong in others:
                with pytest.raises(MCPError) as error:
                    await answer(client, asked, **wrong)
                refused.append(error.value.error.message)
            answered = await answer(client, asked)
            with pytest.raises(MCPError, match="answered before") as replayed:
                await answer(client, asked)
            calls = await calls_of_the_upstream(client)

    assert ["requestState" in message for message in refused] == [True] * 3
    assert answered.startswith("accept {'day': 'Tuesday'}")
    assert replayed.value.error.data == {"reason": "parked_call_lost", "effects": "possible"}
    # Of a stateless one the second is the retry with the answer; the last counts the calls.
    assert calls == (2 if era == "old" else 3)


@every_era
@pytest.mark.parametrize("transport", ["http", "stdio"])
async def test_a_call_that_was_parked_in_a_process_that_is_gone_is_lost_and_runs_no_more(
    tmp_path: Path, era: str, transport: Literal["http", "stdio"]
) -> None:
    with listening("asking", ERAS[era]) as url:
        async with process(tmp_path, url, transport) as client:
            asked = await ask(client)
        async with process(tmp_path, url, transport) as client:
            before = await calls_of_the_upstream(client)
            with pytest.raises(MCPError) as lost:
                await answer(client, asked)
            after = await calls_of_the_upstream(client)

    assert lost.value.error.code == types.INVALID_PARAMS
    assert lost.value.error.data == {"reason": "parked_call_lost", "effects": "possible"}
    assert after == before + 1
