"""`tasks/get`, `tasks/update` and `tasks/cancel` to one upstream (SEP-2663), within its limits and in time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from goat_mcp.core.calling_client import ClientRequest, RequestNotSent
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.upstreams.calls.resource_requests import ResourceRequests
from goat_mcp.upstreams.calls.task_answers import COMPLETED, FAILED, INPUT_REQUIRED, task_members
from goat_mcp.upstreams.config.entry import UpstreamConfig
from goat_mcp.upstreams.envelope import TASKS
from goat_mcp.upstreams.transports.server_requests import KIND_OF, labelled

if TYPE_CHECKING:  # loaded with the first connection
    from goat_mcp.upstreams.transports.connection import Connection

ANSWER_WITHIN_S = 30.0
MAX_QUESTIONS = 100
"""Of one task at a time."""
_MAX_CODE = 2**53


class TaskRequests:
    """`requests` brings them there."""

    def __init__(self, config: UpstreamConfig, requests: ResourceRequests) -> None:
        self._config = config
        self._requests = requests

    async def get(self, task_id: str, ctx: ToolContext) -> dict[str, Any]:
        """The task without its id: the members of `task_members`, and `result`, `error` or `inputRequests` if that is
        there and can be read. Raises `ToolError`, and `UpstreamError` for what the upstream refuses."""
        name = self._config.name
        raw = await self._send("tasks/get", task_id, {}, ctx)
        if raw.get("taskId") != task_id:
            raise ToolError(ErrorCode.UPSTREAM, f"upstream {name} answered about another task than it was asked about")
        state = task_members(name, raw)
        if state["status"] == INPUT_REQUIRED:
            return {**state, "inputRequests": self._questions(raw.get("inputRequests"))}
        if state["status"] == COMPLETED:
            if not isinstance(result := raw.get("result"), dict):
                raise ToolError(ErrorCode.UPSTREAM, f"upstream {name} completed a task without a result")
            return {**state, "result": result}
        if state["status"] == FAILED:
            return {**state, "error": _error(name, raw.get("error"))}
        return state

    async def update(self, task_id: str, answers: Mapping[str, Any], ctx: ToolContext) -> None:
        """Raises like `get`."""
        await self._send("tasks/update", task_id, {"inputResponses": dict(answers)}, ctx)

    async def cancel(self, task_id: str, ctx: ToolContext) -> None:
        """Raises like `get`."""
        await self._send("tasks/cancel", task_id, {}, ctx)

    async def _send(self, method: str, task_id: str, more: Mapping[str, Any], ctx: ToolContext) -> dict[str, Any]:
        params = {"taskId": task_id, **more, "_meta": ctx.meta}

        async def run(connection: Connection) -> dict[str, Any]:
            return await connection.ask(method, params, name=task_id, client=ctx.client, extensions=TASKS)

        return await self._requests.run(run, ANSWER_WITHIN_S, "answer about a task", ctx)

    def _questions(self, given: Any) -> dict[str, Any]:
        """What the client is asked, under the upstream's own keys. Raises `ToolError` for what it may not be asked."""
        name = self._config.name
        questions = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
        if len(questions) > MAX_QUESTIONS:
            raise ToolError(ErrorCode.UPSTREAM, f"upstream {name} asks {len(questions)} questions at once")
        asked: dict[str, Any] = {}
        for key, request in questions.items():
            match request:
                case {"method": str() as method, **rest} if method in KIND_OF:
                    params: Any = rest.get("params")
                case _:
                    raise ToolError(ErrorCode.UPSTREAM, f"upstream {name} asks for something that MCP does not know")
            if (kind := KIND_OF[method]) not in self._config.allow:
                raise ToolError(
                    ErrorCode.PERMISSION,
                    f"upstream {name} asks for {kind}, which its entry does not allow",
                    f'The user can allow it with "{kind}" in the list `allow` of that entry.',
                )
            about = cast("dict[str, Any]", params) if isinstance(params, dict) else {}
            try:
                shown = labelled(name, ClientRequest(method, about))
            except RequestNotSent as refused:
                said = f"upstream {name} asks for what cannot be shown: {refused}"
                raise ToolError(ErrorCode.UPSTREAM, said) from None
            asked[key] = {"method": shown.method, "params": dict(shown.params)}
        return asked


def _error(upstream: str, given: Any) -> dict[str, Any]:
    match given:
        case {"code": int() as code, "message": str() as message, **rest} if (
            type(code) is int and abs(code) < _MAX_CODE
        ):
            return {"code": code, "message": message, **({"data": rest["data"]} if "data" in rest else {})}
        case _:
            raise ToolError(ErrorCode.UPSTREAM, f"upstream {upstream} says that a task failed, and not how")
