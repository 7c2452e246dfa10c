"""What a handler in another process asks of agents, by name and parameters, as its messages carry it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from goat_mcp.core.agent_runtime import AgentRuntime
from goat_mcp.core.errors import ToolError


async def answer_of_agents(runtime: AgentRuntime | None, message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Their `value`, or the `error`."""
    methods = ("request", "send", "spawn", "list", "catalog")
    if runtime is None or message["method"] not in methods:
        return {"error": {"message": "there are no agents here"}}
    for name, given in message["params"].items():
        if not isinstance(given, str) and (name != "timeout_s" or not isinstance(given, int | float | None)):
            return {"error": {"message": f"{message['method']}: {name} cannot be {given!r:.100}"}}
    method = getattr(runtime, message["method"])
    try:
        inspect.signature(method).bind(**message["params"])
    except TypeError as problem:
        return {"error": {"message": f"{message['method']}: {problem}"}}
    try:
        value: Any = await method(**message["params"])
    except ToolError as error:
        return {"error": {"message": error.message, "suggestion": error.suggestion}}
    return {"value": value}
