"""agents: what a handler's `ctx.runtime` can do, as tools (source: Goondan, the base tool `agents`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.manifests.handler_api import AgentRuntime, Handler, HandlerContext, Host


def build_handlers(host: Host) -> Mapping[str, Handler]:
    return {"request": request, "send": send, "spawn": spawn, "list": list_live, "catalog": catalog}


async def request(ctx: HandlerContext, input: Mapping[str, Any]) -> Any:
    timeout_ms = input.get("timeoutMs")
    timeout_s = None if timeout_ms is None else timeout_ms / 1000
    if correlation_id := input.get("correlationId"):
        if input.get("message") or input.get("input"):
            raise ToolError(ErrorCode.INPUT, "correlationId and message contradict each other", "Leave out one.")
        return await _agents(ctx).request(input["target"], timeout_s=timeout_s, correlation_id=correlation_id)
    return await _agents(ctx).request(input["target"], _message(input, "message"), timeout_s=timeout_s)


async def send(ctx: HandlerContext, input: Mapping[str, Any]) -> Any:
    return await _agents(ctx).send(input["target"], _message(input, "message"))


async def spawn(ctx: HandlerContext, input: Mapping[str, Any]) -> Any:
    message = _message(input, "input") if input.get("input") or input.get("message") else ""
    return await _agents(ctx).spawn(input["type"], name=input.get("name") or "", message=message)


async def list_live(ctx: HandlerContext, input: Mapping[str, Any]) -> Any:
    return {"agents": await _agents(ctx).list()}


async def catalog(ctx: HandlerContext, input: Mapping[str, Any]) -> Any:
    return {"types": await _agents(ctx).catalog()}


def _agents(ctx: HandlerContext) -> AgentRuntime:
    assert ctx.runtime is not None  # the gateway has agents
    return ctx.runtime


def _message(input: Mapping[str, Any], field: str) -> str:
    """The seed says `input` as well as `message`; both with different words are a mistake."""
    given = {input[key] for key in ("message", "input") if input.get(key)}
    if len(given) > 1:
        raise ToolError(ErrorCode.INPUT, "input and message say different things", "Give one of them.")
    if not given:
        raise ToolError(ErrorCode.INPUT, f"{field}: required, nothing came", "Say what you want.")
    return given.pop()
