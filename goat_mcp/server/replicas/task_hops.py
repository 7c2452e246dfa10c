"""What other replicas ask of the background tasks that this one runs: `commands.tasks.team_tasks` asks."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import anyio
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from goat_mcp.commands.tasks.manager import TaskManager
from goat_mcp.commands.tasks.team_tasks import PATH, READ, STOP, TeamRecord, TeamTasks
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.replicas.gate import HOP
from goat_mcp.server.replicas.task_takeover import TaskTakeover
from goat_mcp.server.replicas.this_replica import ThisReplica
from goat_mcp.state.redis.encrypted_text import EncryptedText
from goat_mcp.state.redis.shared_state import SharedState
from goat_mcp.state.replicas.replica import Replica
from goat_mcp.web.hops.signature import Hop


@dataclass(frozen=True)
class TaskHops:
    """ASGI application, behind the gate that checks the signature. `me` is this replica as it is registered now."""

    tasks: Callable[[], TaskManager]
    workspace: Callable[[], str]
    me: Callable[[], Replica]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        hop: Hop = scope[HOP]
        asked: dict[str, Any] = json.loads((await receive())["body"])
        task = self.tasks().local(str(asked["id"]), str(asked["principal"]))
        if task is None or hop.path not in (READ, STOP):
            await Response(status_code=404)(scope, receive, send)
            return
        if hop.path == STOP:
            await self.tasks().stop(task)
        else:
            async with anyio.create_task_group() as group:

                async def watch() -> None:
                    while (await receive())["type"] != "http.disconnect":
                        pass
                    group.cancel_scope.cancel()  # nobody waits any more

                group.start_soon(watch)
                await task.work.wait(float(asked["wait_s"]))
                group.cancel_scope.cancel()
        record = TeamRecord.of(task, self.workspace(), self.me())
        await JSONResponse(asdict(record))(scope, receive, send)


def join_tasks(gateway: Gateway, shared: SharedState, replica: ThisReplica) -> TaskTakeover:
    """Have this replica's tasks known to the others, and theirs to it. Before the first call."""
    services = gateway.services
    registry, first = replica.registry, services.directories.first
    seal = EncryptedText(shared.keys)
    services.team_tasks = team = TeamTasks(shared.connection, seal, registry, replica.hops, first)
    replica.apps[PATH] = TaskHops(services.tasks, first, lambda: registry.me)
    return TaskTakeover(
        team,
        registry,
        services.tasks,
        lambda: gateway.on_demand.agents().spawner,
        first,
        services.telemetry.warning,
    )
