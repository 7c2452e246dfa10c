"""`tasks/get`, `tasks/update` and `tasks/cancel` of SEP-2663, for 2026-07-28 clients that declare the extension."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from goat_mcp.core.lazy import Lazy
from goat_mcp.server.caller_identity import TASKS_EXTENSION, Caller, CallerIdentity
from goat_mcp.server.client_channel import Context

if TYPE_CHECKING:  # loaded for the first client that knows tasks
    from goat_mcp.server.tasks.client_tasks import ClientTasks
    from goat_mcp.server.tasks.status_notices import Listen

_DONE: dict[str, Any] = {"resultType": "complete"}


class TaskParams(types.RequestParams):
    task_id: str


class UpdateTaskParams(TaskParams):
    input_responses: dict[str, Any]


@dataclass(eq=False)
class TaskRequests:
    tasks: Lazy[ClientTasks]
    who: CallerIdentity

    def add_to(self, server: Server[Any]) -> None:
        server.add_request_handler("tasks/get", TaskParams, self.get)
        server.add_request_handler("tasks/update", UpdateTaskParams, self.update)
        server.add_request_handler("tasks/cancel", TaskParams, self.cancel)

    async def get(self, ctx: Context, params: TaskParams) -> dict[str, Any]:
        state = await self.tasks().state(params.task_id, ctx, self._caller(ctx, params))
        return {**_DONE, **state}

    async def update(self, ctx: Context, params: UpdateTaskParams) -> dict[str, Any]:
        await self.tasks().answer(params.task_id, params.input_responses, ctx, self._caller(ctx, params))
        return dict(_DONE)

    async def cancel(self, ctx: Context, params: TaskParams) -> dict[str, Any]:
        await self.tasks().cancel(params.task_id, ctx, self._caller(ctx, params))
        return dict(_DONE)

    async def listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams, listen: Listen
    ) -> types.SubscriptionsListenResult:
        """A change stream that may name tasks, over `listen` for all else. Raises `MCPError`."""
        task_ids = (params.notifications.model_extra or {}).get("taskIds")
        if task_ids is None:
            return await listen(ctx, params)
        check_declared(ctx)
        if not isinstance(task_ids, list) or not all(isinstance(one, str) for one in cast("list[Any]", task_ids)):
            raise MCPError(types.INVALID_PARAMS, "notifications.taskIds is no list of ids")
        from goat_mcp.server.tasks.status_notices import listen_to_tasks

        return await listen_to_tasks(self.tasks(), cast("list[str]", task_ids), ctx, self.who.of(ctx), params, listen)

    def _caller(self, ctx: Context, params: TaskParams) -> Caller:
        """Who asks. Raises `MCPError` for a client that has not declared the extension, and for a header that names
        another task (SEP-2243)."""
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            raise MCPError(types.METHOD_NOT_FOUND, "Method not found", ctx.method)
        check_declared(ctx)
        if ctx.request is not None:
            named = decode_header_value(ctx.request.headers.get(MCP_NAME_HEADER))
            if named is None or named.strip() != params.task_id:
                raise MCPError(types.HEADER_MISMATCH, f"the header Mcp-Name of {ctx.method} is not its params.taskId")
        return self.who.of(ctx)


def check_declared(ctx: Context) -> None:
    """Raises `MCPError` if this request does not declare the extension."""
    declared = ctx.session.client_capabilities
    if declared is None or TASKS_EXTENSION not in (declared.extensions or {}):
        raise MCPError(
            types.MISSING_REQUIRED_CLIENT_CAPABILITY,
            f"this needs the extension {TASKS_EXTENSION}, which the request does not declare",
            {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}},
        )
