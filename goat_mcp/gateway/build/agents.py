"""The agents of one gateway and the teams of them: how they are built over its services, and how their mail comes back.

Loaded by the first call that needs one. What an agent does and what a team is, is in `goat_mcp.agents` and
`goat_mcp.agents.teams`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from goat_mcp.agents.engine import Engine
from goat_mcp.agents.engines import Engines
from goat_mcp.agents.loop import ToolCall
from goat_mcp.agents.models.choice import ModelChoice
from goat_mcp.agents.options import AgentOptions
from goat_mcp.agents.records import AgentRecords
from goat_mcp.agents.spawner import Spawner
from goat_mcp.agents.teams.bus import AgentBus
from goat_mcp.agents.teams.coordinator import TeamCoordinator
from goat_mcp.agents.teams.members import AgentMembers
from goat_mcp.agents.type_files import TypeFiles
from goat_mcp.agents.worktree import WorktreeCalls, Worktrees
from goat_mcp.calls.batch import BatchOutcome
from goat_mcp.calls.extensions import CallNext
from goat_mcp.calls.pipeline import CallRequest
from goat_mcp.catalog.catalog import Catalog
from goat_mcp.catalog.registry import AnyTool
from goat_mcp.commands.tasks.manager import TaskManager
from goat_mcp.core.context import ToolContext
from goat_mcp.core.redaction import Redactor
from goat_mcp.core.result import ToolResult
from goat_mcp.core.spec import ToolSpec
from goat_mcp.files.workspace import Workspace
from goat_mcp.processes import ProcessGuard
from goat_mcp.processes.environment import CommandEnvironment
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.sessions import Sessions
from goat_mcp.state.spill import SpillFiles
from goat_mcp.state.telemetry import Telemetry


@dataclass(frozen=True, kw_only=True)
class GatewayAgents:
    """`begin_step` is there where what an agent sees differs from turn to turn; `on_finished` is `Spawner`'s."""

    options: AgentOptions
    workspace: Workspace
    state: StateDirectory
    sessions: Sessions
    tasks: TaskManager
    spill: SpillFiles
    telemetry: Telemetry
    redactor: Redactor
    models: ModelChoice
    guard: ProcessGuard
    environment: CommandEnvironment
    catalog: Catalog
    call_all: Callable[[Sequence[CallRequest]], Awaitable[BatchOutcome]]
    begin_step: Callable[[ToolContext, Mapping[str, ToolSpec]], Mapping[str, ToolSpec]] | None
    on_finished: Callable[[str, str, str, ToolContext], Awaitable[tuple[str, ...]]] | None

    @cached_property
    def spawner(self) -> Spawner:
        """What runs them."""
        return Spawner(
            workspace=self.workspace,
            sessions=self.sessions,
            tasks=self.tasks,
            spill=self.spill,
            telemetry=self.telemetry,
            redactor=self.redactor,
            options=self.options,
            engines=Engines(WorktreeCalls(self._call), self.models.endpoint, self.options, self._command_line()),
            types=TypeFiles(self.workspace),
            records=AgentRecords(self.state, self.telemetry.warning),
            worktrees=Worktrees(self.workspace, self.environment),
            tools=lambda rights: self.catalog.of(rights).listed(rights),
            tools_of_turn=self._tools_of_turn if self.begin_step is not None else None,
            on_finished=self.on_finished,
        )

    @cached_property
    def bus(self) -> AgentBus:
        """How calls reach them."""
        return AgentBus(self.spawner, self.tasks, lambda: self.teams if "teams" in self.__dict__ else None)

    @cached_property
    def teams(self) -> TeamCoordinator:
        return TeamCoordinator(self.state, self.spill.scope, self.tasks, AgentMembers(self.spawner))

    async def with_letters(
        self, spec: ToolSpec, arguments: Mapping[str, Any], ctx: ToolContext, call_next: CallNext
    ) -> ToolResult:
        """The result of a call, and with it what members of a team wrote to their lead."""
        if "teams" not in self.__dict__:
            return await call_next(arguments)
        return await self.teams.deliver_to_lead(spec, arguments, ctx, call_next)

    def with_mail(self, spec: ToolSpec, result: ToolResult, ctx: ToolContext) -> ToolResult:
        """A call's result, and with it what agents wrote to the session that called."""
        return self.bus.with_mail(spec, result, ctx) if "bus" in self.__dict__ else result

    def _tools_of_turn(self, ctx: ToolContext) -> Sequence[AnyTool]:
        """What the next turn of an agent sees."""
        assert self.begin_step is not None
        catalog = self.catalog.of(ctx.rights)
        permitted = {tool.spec.name: tool for tool in catalog.tools() if ctx.rights.permits(tool.spec.rule_name)}
        seen = self.begin_step(ctx, {tool.spec.name: tool.spec for tool in catalog.listed(ctx.rights)})
        return [permitted[name] for name in seen if name in permitted]

    def _command_line(self) -> Engine | None:
        if not self.options.command:
            return None
        from goat_mcp.agents.command_line import CommandLine

        return CommandLine(self.options, self.guard, replace(self.environment, passed_on=self.options.command_env))

    async def _call(self, calls: Sequence[ToolCall]) -> Sequence[ToolResult]:
        """The calls of one agent's turn, as a client's batch."""
        return (await self.call_all([CallRequest(call.name, call.arguments, call.ctx) for call in calls])).results
