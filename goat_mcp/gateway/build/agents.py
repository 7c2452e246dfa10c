"""The agents of one gateway and the teams of them: how they are built over its services, and how their mail comes back.

Loaded by the first call that needs one. What an agent does and what a team is, is in `goat_mcp.agents` and
`goat_mcp.agents.teams`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from goat_mcp.agents.agent_start import agent_id_of
from goat_mcp.agents.agent_types import AgentType, TypeFiles
from goat_mcp.agents.engine import Engine
from goat_mcp.agents.engines import Engines
from goat_mcp.agents.loop import ToolCall
from goat_mcp.agents.records import AgentRecords
from goat_mcp.agents.spawner import Spawner
from goat_mcp.agents.takeover import AgentTakeover
from goat_mcp.agents.teams.bus import AgentBus
from goat_mcp.agents.teams.coordinator import TeamCoordinator
from goat_mcp.agents.teams.members import AgentMembers
from goat_mcp.agents.worktree import WorktreeCalls, Worktrees
from goat_mcp.calls.batch import BatchOutcome
from goat_mcp.calls.pipeline import CallRequest
from goat_mcp.catalog.catalog import Catalog
from goat_mcp.catalog.registry import AnyTool
from goat_mcp.core.context import ToolContext
from goat_mcp.core.lazy import Lazy
from goat_mcp.core.result import ToolResult
from goat_mcp.core.spec import ToolSpec
from goat_mcp.gateway.build.services import Services

BeginStep = Callable[[ToolContext, Mapping[str, ToolSpec]], Mapping[str, ToolSpec]]
CallAll = Callable[[Sequence[CallRequest]], Awaitable[BatchOutcome]]
OnFinished = Callable[[str, str, str, ToolContext], Awaitable[tuple[str, ...]]]


class GatewayAgents:
    """`spawner` runs agents, `bus` is how calls reach them."""

    def __init__(
        self,
        services: Services,
        catalog: Catalog,
        call_all: CallAll,
        *,
        begin_step: BeginStep | None,
        on_finished: OnFinished | None,
        declared_types: Callable[[], Sequence[AgentType]],
    ) -> None:
        """`begin_step`: if what an agent sees differs from turn to turn. `on_finished`: see `Spawner`."""
        self._services = services
        self._catalog = catalog
        self._call_all = call_all
        s, options = services, services.settings.agent
        self.spawner = Spawner(
            workspace=s.workspace,
            sessions=s.sessions,
            tasks=s.tasks(),
            spill=s.spill,
            telemetry=s.telemetry,
            redactor=s.redactor,
            options=options,
            engines=Engines(WorktreeCalls(self._call_turn), s.models.endpoint, options, self._command_line()),
            types=TypeFiles(s.workspace, declared_types),
            records=AgentRecords(s.state, s.telemetry.warning),
            worktrees=Worktrees(s.workspace, s.environment),
            tools=lambda rights: catalog.of(rights).for_models(rights),
            tools_of_turn=self._tools_of_turn(begin_step) if begin_step is not None else None,
            on_finished=on_finished,
            takeover=self._takeover(),
        )
        self._teams = Lazy(lambda: TeamCoordinator(s.state, s.spill.scope, s.tasks(), AgentMembers(self.spawner)))
        self.bus = AgentBus(self.spawner, s.tasks(), lambda: self._teams.made)

    @property
    def teams(self) -> TeamCoordinator:
        return self._teams()

    async def with_mail(self, spec: ToolSpec, result: ToolResult, ctx: ToolContext) -> ToolResult:
        """A call's result, and what agents and members of a team have written to the session that called."""
        if (teams := self._teams.made) is not None:
            result = await teams.with_letters(spec, result, ctx)
        return self.bus.with_mail(spec, result, ctx)

    def _tools_of_turn(self, begin_step: BeginStep) -> Callable[[ToolContext], Sequence[AnyTool]]:
        """What the next turn of an agent sees."""

        def tools(ctx: ToolContext) -> Sequence[AnyTool]:
            catalog = self._catalog.of(ctx.rights)
            permitted = {
                tool.spec.name: tool
                for tool in catalog.tools()
                if ctx.rights.permits(tool.spec.rule_name, tool.spec.name)
            }
            shown = begin_step(ctx, {tool.spec.name: tool.spec for tool in catalog.for_models(ctx.rights)})
            return [permitted[name] for name in shown if name in permitted]

        return tools

    def _command_line(self) -> Engine | None:
        options = self._services.settings.agent
        if not options.command:
            return None
        from goat_mcp.agents.command_line import CommandLine

        environment = replace(self._services.environment, passed_on=options.command_env)
        return CommandLine(options, self._services.guard, environment)

    def _takeover(self) -> AgentTakeover | None:
        s = self._services
        if s.team_tasks is None or s.shared is None:
            return None
        from goat_mcp.state.redis.encrypted_text import EncryptedText

        seal = EncryptedText(s.shared.keys)
        return AgentTakeover(s.shared.connection, s.team_tasks.held, seal, lambda session: s.modes.of(session).value)

    async def _call_turn(self, calls: Sequence[ToolCall]) -> Sequence[ToolResult]:
        """The calls of one agent's turn, as a client's batch; recorded first, for another replica that goes on."""
        if self.spawner.takeover is not None:
            await self.spawner.takeover.begin_calls(agent_id_of(calls[0].ctx.session_key))
        return (await self._call_all([CallRequest(call.name, call.arguments, call.ctx) for call in calls])).results
