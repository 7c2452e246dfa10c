"""The base tools `agents` and `self-restart` through a real client, in both eras of the protocol."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import anyio
import pytest

from tests.e2e.goat import Launch, connected

pytestmark = pytest.mark.anyio
BOUND_S = 60.0
ERAS = pytest.mark.parametrize("era", ["legacy", "2026-07-28"])


def base(launch: Launch) -> Launch:
    return replace(launch, options=(*launch.options, "--toolset", "base"))


def text_of(result: Any) -> str:
    return result.content[0].text


def said(result: Any) -> Any:
    assert not result.is_error, result.content
    return json.loads(text_of(result))


@ERAS
async def test_a_client_sees_which_agents_there_could_be_and_that_there_are_none(launch: Launch, era: str) -> None:
    with anyio.fail_after(BOUND_S):
        async with connected(base(launch), era) as client:
            types = said(await client.call_tool("agents__catalog", {}))["types"]
            live = said(await client.call_tool("agents__list", {}))
            nobody = await client.call_tool("agents__send", {"target": "scout", "message": "Hello."})

    assert [one["type"] for one in types] == ["general-purpose", "explorer", "planner"]
    assert live == {"agents": []}
    assert nobody.is_error and "[E_DELIVERY]" in text_of(nobody)


@ERAS
async def test_a_client_over_stdio_goes_on_after_a_restart(launch: Launch, era: str) -> None:
    with anyio.fail_after(BOUND_S):
        async with connected(base(launch), era) as client:
            first = said(await client.call_tool("self-restart__request", {"reason": "a test"}))
            tools = [tool.name for tool in (await client.list_tools()).tools]
            again = said(await client.call_tool("self-restart__request", {"reason": "a second one"}))
            found = await client.call_tool("Glob", {"pattern": "src/*.py"})

    assert (first, again) == ({"restarting": True, "ends": []},) * 2
    assert "agents__request" in tools
    assert "greeting.py" in text_of(found)


@ERAS
async def test_r_perm_6_a_session_that_was_narrowed_is_so_after_a_restart(launch: Launch, era: str) -> None:
    with_commands = replace(
        launch, options=(*launch.options, "--mode", "acceptEdits", "--toolset", "base", "--toolset", "goa")
    )
    with anyio.fail_after(BOUND_S):
        async with connected(with_commands, era) as client:
            narrowed = said(await client.call_tool("goa_command__run", {"command": "mode default"}))
            said(await client.call_tool("self-restart__request", {"reason": "a test"}))
            after = said(await client.call_tool("goa_command__run", {"command": "mode"}))

    assert narrowed == {"mode": "default", "before": "acceptEdits"}
    assert after == {"mode": "default"}
