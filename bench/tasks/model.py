"""The same tasks on a real model, behind any endpoint that speaks OpenAI's chat completions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from bench.tasks.ledger import SYSTEM
from bench.tasks.ways import Call, Conversation, TaskFailed

MAX_TURNS = 25
TIMEOUT_S = 300.0


@dataclass(frozen=True)
class Endpoint:
    """`url` is what stands before `/chat/completions`. `key` is sent as a bearer token if there is one."""

    url: str
    model: str
    key: str = ""


async def solve_with_model(
    prompt: str, talk: Conversation, endpoint: Endpoint, listed: Sequence[Mapping[str, Any]]
) -> str:
    """Let the model work until it calls no more tools. Returns what it says then; raises `TaskFailed`.

    The ledger gets the tokens that the endpoint counts.
    """
    messages: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": prompt}]
    tools = [_function(tool) for tool in listed]
    headers = {"Authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}
    async with httpx.AsyncClient(timeout=TIMEOUT_S, headers=headers) as http:
        for _ in range(MAX_TURNS):
            body = {"model": endpoint.model, "messages": messages, "tools": tools, "temperature": 0}
            answer = await http.post(f"{endpoint.url}/chat/completions", json=body)
            if not answer.is_success:
                raise TaskFailed(f"the endpoint answered {answer.status_code}: {answer.text[:200]}")
            reply = answer.json()
            _bill(talk, reply.get("usage") or {})
            said = reply["choices"][0]["message"]
            messages.append(said)
            wanted: list[dict[str, Any]] = said.get("tool_calls") or []
            if not wanted:
                return said.get("content") or ""
            for one in wanted:
                messages.append({"role": "tool", "tool_call_id": one["id"], "content": await _called(talk, one)})
    raise TaskFailed(f"not done after {MAX_TURNS} turns")


def _function(tool: Mapping[str, Any]) -> dict[str, Any]:
    described = {"name": tool["name"], "description": tool.get("description", ""), "parameters": tool["inputSchema"]}
    return {"type": "function", "function": described}


def _bill(talk: Conversation, usage: Mapping[str, Any]) -> None:
    ledger = talk.ledger
    details: Mapping[str, Any] = usage.get("prompt_tokens_details") or {}
    cached: int = details.get("cached_tokens") or 0
    ledger.turns += 1
    ledger.input_cached += cached
    ledger.input_new += usage.get("prompt_tokens", 0) - cached
    ledger.output += usage.get("completion_tokens", 0)


async def _called(talk: Conversation, wanted: Mapping[str, Any]) -> str:
    """The result of one call, or what is wrong with it, for the model to read."""
    function = wanted["function"]
    try:
        arguments = json.loads(function["arguments"] or "{}")
    except ValueError as invalid:
        return f"the arguments are no JSON: {invalid}"
    return await talk.read(Call(function["name"], arguments))
