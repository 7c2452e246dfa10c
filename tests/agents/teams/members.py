"""Team members for tests: each runs as a task, hears its mail, and rests, like an agent without a model."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, cast

from goat_mcp.agents.agent_start import SpawnRequest, agent_session_key
from goat_mcp.agents.engine import Mail
from goat_mcp.agents.spawner import StartedAgent
from goat_mcp.agents.teams.team import Team
from goat_mcp.commands.tasks import TaskManager, TaskOutcome, TaskStatus
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from tests.commands.tasks.test_manager import Work


@dataclass(eq=False)
class Members:
    """A `StartMember`. `heard` holds, by member, each batch of mail that ended a rest."""

    tasks: TaskManager
    heard: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    works: dict[str, Work] = field(default_factory=dict[str, Work])
    running: list[asyncio.Task[None]] = field(default_factory=list[asyncio.Task[None]])
    deaf: set[str] = field(default_factory=set[str])

    async def __call__(self, request: SpawnRequest, team: Team, mail: Mail, ctx: ToolContext) -> StartedAgent:
        if request.type_name == "unknown":
            raise ToolError(ErrorCode.INPUT, "no agent type unknown")
        work = Work(request.name)
        id = f"{ctx.principal}.{request.name}"
        task = await self.tasks.adopt(work, principal=ctx.principal, task_id=id, name=request.name)
        self.works[request.name] = work
        self.heard[request.name] = []
        if request.name not in self.deaf:
            self.running.append(asyncio.create_task(self._live(request.name, mail, work)))
        return StartedAgent(task, cast("Any", work), cast("Any", None), ())

    async def _live(self, name: str, mail: Mail, work: Work) -> None:
        while more := await mail.when_idle(f"{name} is done"):
            self.heard[name] += more
        work.end(TaskOutcome(TaskStatus.COMPLETED))


def as_member(name: str, principal: str = "local") -> ToolContext:
    """The context of a call that member `name` makes."""
    return ToolContext(call_id="c", principal=principal, session_key=agent_session_key(f"{principal}.{name}"))
