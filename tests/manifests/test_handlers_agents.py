"""What a user's own Python handler may do with agents: `ctx.runtime`, and `ctx.message` in an agent's turn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.agents.scripted import BOUND_S, ScriptedModel, ground, says, use

pytestmark = pytest.mark.anyio

_MANIFEST = """
apiVersion: goat-mcp/v1
kind: Tool
metadata: {name: helper}
spec:
  entry: ./helper.py
  exports:
    - name: ask
      description: Ask an agent.
      sideEffect: none
      parameters: {type: object, properties: {}}
    - name: fail
      description: Ask nobody.
      sideEffect: none
      parameters: {type: object, properties: {}}
    - name: mistake
      description: Say no words.
      sideEffect: none
      parameters: {type: object, properties: {}}
    - name: show
      description: Show the message that holds the call.
      sideEffect: none
      parameters: {type: object, properties: {}}
"""
_HANDLERS = """
async def ask(ctx, input):
    agents = ctx.runtime
    started = await agents.spawn("explorer", name="scout", message="Begin.")
    first = await agents.request("scout", correlation_id=started["correlationId"])
    second = await agents.request("scout", "And then?", timeout_s=20)
    sent = await agents.send("scout", "Thanks.")
    live = [agent["name"] for agent in await agents.list()]
    types = [one["type"] for one in await agents.catalog()]
    return {"first": first, "second": second, "sent": sent, "live": live, "types": types}

async def fail(ctx, input):
    await ctx.runtime.request("nobody", "?")

async def mistake(ctx, input):
    await ctx.runtime.send("scout", 5)

async def show(ctx, input):
    return {"message": ctx.message}

handlers = {"ask": ask, "fail": fail, "mistake": mistake, "show": show}
"""


def tools(folder: Path) -> dict[str, Any]:
    resource = folder / "tools" / "helper"
    resource.mkdir(parents=True)
    (resource / "tool.yaml").write_text(_MANIFEST)
    (resource / "helper.py").write_text(_HANDLERS)
    return {"manifests": [str(folder / "tools")]}


async def test_a_users_handler_starts_asks_tells_and_lists_agents(tmp_path: Path) -> None:
    model = ScriptedModel([says("Begun."), says("Then this.")])
    async with ground(tmp_path, model, **tools(tmp_path)) as on:
        with anyio.fail_after(BOUND_S):
            result = await on.call("helper__ask", {})

    assert json.loads(result.text) == {
        "first": {"answer": "Begun."},
        "second": {"answer": "Then this."},
        "sent": {"sent": True, "to": "scout"},
        "live": ["scout"],
        "types": ["general-purpose", "explorer", "planner"],
    }


async def test_what_agents_refuse_a_handler_is_its_failure_with_the_way_out(tmp_path: Path) -> None:
    async with ground(tmp_path, ScriptedModel(), **tools(tmp_path)) as on:
        with anyio.fail_after(BOUND_S):
            result = await on.call("helper__fail", {})

    assert result.text.splitlines() == [
        "target: no agent is called 'nobody'",
        "No agent runs; start one with spawn.",
        "[E_TOOL]",
    ]


async def test_a_handler_that_says_no_text_is_told_so(tmp_path: Path) -> None:
    async with ground(tmp_path, ScriptedModel(), **tools(tmp_path)) as on:
        with anyio.fail_after(BOUND_S):
            result = await on.call("helper__mistake", {})

    assert result.text.splitlines()[0] == "send: message cannot be 5"
    assert result.error_code == "E_TOOL"


async def test_a_handler_sees_the_agents_message_that_holds_its_call_and_none_of_a_client(tmp_path: Path) -> None:
    said = says("I want to see it.", use("helper__show", {}, "id_1"))
    model = ScriptedModel([said, says("Seen.")])
    async with ground(tmp_path, model, **tools(tmp_path)) as on:
        with anyio.fail_after(BOUND_S):
            await on.agent()
            of_client = await on.call("helper__show", {})

    of_agent = model.requests[-1].messages[-1].content[0]["content"][0]["text"]
    assert json.loads(of_agent) == {
        "message": {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I want to see it."},
                {"type": "tool_use", "id": "id_1", "name": "helper__show", "input": {}},
            ],
        }
    }
    assert json.loads(of_client.text) == {"message": None}
