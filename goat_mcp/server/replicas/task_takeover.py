"""Goes on with the work of replicas that have ended: agents, after their last recorded turn."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio

from goat_mcp.commands.tasks.manager import TaskManager
from goat_mcp.commands.tasks.task import TaskStatus
from goat_mcp.commands.tasks.team_tasks import TeamTasks
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.state.database import Warn
from goat_mcp.state.replicas.registry import ReplicaRegistry

if TYPE_CHECKING:  # loaded with the first agent
    from collections.abc import Mapping

    from goat_mcp.agents.spawner import Spawner
    from goat_mcp.commands.tasks.team_tasks import TeamRecord

LOOKS_IN_A_LEASE = 2
HANDING_OVER_S = 4.0
_NOT_KNOWN = "the replica {0}, which ran it, has ended; it may have taken effect, and is not run again"


class TaskTakeover:
    """`workspace` names the one that this replica serves: work in another one is not taken."""

    def __init__(
        self,
        team: TeamTasks,
        registry: ReplicaRegistry,
        tasks: Callable[[], TaskManager],
        spawner: Callable[[], Spawner],
        workspace: Callable[[], str],
        warn: Warn,
    ) -> None:
        self._team = team
        self._registry = registry
        self._tasks = tasks
        self._spawner = spawner
        self._workspace = workspace
        self._warn = warn
        self._waiting: dict[str, bool] = {}
        """Claimed and not begun, by id: whether Redis has seen all of it."""

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Look for such work meanwhile; at the end, leave to others what this replica holds."""
        async with anyio.create_task_group() as group:
            self._team.held.on_taken = lambda task_id: group.start_soon(self._tasks().stop_taken, task_id)
            group.start_soon(self._look)
            try:
                yield
            finally:
                self._team.held.on_taken = lambda task_id: None
                group.cancel_scope.cancel()
                with anyio.move_on_after(HANDING_OVER_S, shield=True):
                    for task_id in self._team.held.hand_over():
                        await self._tasks().stop_taken(task_id)

    async def _look(self) -> None:
        while True:
            await anyio.sleep(self._registry.lease_s / LOOKS_IN_A_LEASE)
            if self._registry.is_held and not self._registry.is_fenced and not self._registry.me.is_leaving:
                with suppress(ToolError):  # the registry tells of an outage
                    await self._take_over()

    async def _take_over(self) -> None:
        await self._team.held.renew()
        self._waiting |= {one.task_id: one.is_known for one in await self._team.held.claim()}
        for task_id, is_known in list(self._waiting.items()):
            if await self._go_on(task_id, is_known=is_known):
                del self._waiting[task_id]

    async def _go_on(self, task_id: str, *, is_known: bool) -> bool:
        """False if it has to wait."""
        record = await self._team.running(task_id)
        if record is None:
            await self._team.held.let_go(task_id)
            return True
        data = await self._team.restart_data(task_id)
        if data is None or not is_known or record.workspace != self._workspace():
            await self._team.end(record, TaskStatus.ORPHANED, _NOT_KNOWN.format(record.replica))
            return True
        try:
            await self._start(record, data)
        except ToolError as problem:
            if problem.code is ErrorCode.BUSY:
                return False
            await self._fail(record, problem.message)
        except (OSError, ValueError, TypeError, KeyError) as problem:  # the disk, or data of another version
            await self._fail(record, f"{type(problem).__name__}: {problem}")
        else:
            self._warn("the work of an ended replica goes on here", task=task_id, replica=record.replica)
        return True

    async def _fail(self, record: TeamRecord, problem: str) -> None:
        why = f"the replica {record.replica}, which ran it, has ended, and it cannot go on here: {problem}"
        await self._team.end(record, TaskStatus.FAILED, why)

    async def _start(self, record: TeamRecord, data: Mapping[str, Any]) -> None:
        from goat_mcp.agents.takeover import RESUME_PROMPT, read_restart_data

        request, ctx = read_restart_data(data, record.principal)
        spawner = self._spawner()
        with spawner.spill.used_by(record.principal):
            try:
                resumed = replace(request, resume=record.id, prompt=RESUME_PROMPT, type_name="", isolation="")
                await spawner.start(resumed, ctx)
            except ToolError as problem:
                if problem.code is not ErrorCode.TASK_UNKNOWN:
                    raise
                await spawner.start(replace(request, agent_id=record.id), ctx)
