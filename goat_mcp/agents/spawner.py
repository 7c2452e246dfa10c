"""Starts agents and cleans up after them: records and worktrees are kept or removed, so that agents can be resumed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from goat_mcp.agents.agent_start import AgentStart, SpawnRequest
from goat_mcp.agents.agent_task import AgentTask, Body
from goat_mcp.agents.agent_types import DEFAULT_TYPE, AgentType, TypeFiles
from goat_mcp.agents.engine import Activity, AgentJob, AgentOutcome, AgentState, OnEvent
from goat_mcp.agents.engines import EngineChoice, Engines
from goat_mcp.agents.inbox import Inbox
from goat_mcp.agents.options import MAX_DEPTH, AgentOptions
from goat_mcp.agents.records import AgentRecord, AgentRecords, RunningTranscript
from goat_mcp.agents.takeover import AgentTakeover
from goat_mcp.agents.worktree import Worktree, Worktrees
from goat_mcp.catalog.registry import AnyTool
from goat_mcp.commands.tasks import Task, TaskManager, new_task_id
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.redaction import Redactor, redacted_error
from goat_mcp.core.rights import Rights
from goat_mcp.files.workspace import Workspace
from goat_mcp.state.sessions import Sessions
from goat_mcp.state.spill import SpillFiles
from goat_mcp.state.telemetry import Telemetry


@dataclass(frozen=True)
class LiveAgent:
    id: str
    principal: str
    name: str
    title: str
    type: str = ""
    profiles: tuple[str, ...] = ()
    started_by: str = ""
    """The session that started it."""
    inbox: Inbox | None = None
    """None if only its team can write to it, or if it reads nothing."""

    @property
    def display_name(self) -> str:
        return self.name or self.id

    def __str__(self) -> str:
        return f"{self.id} ({self.name or self.title[:40]})"


class LiveAgents:
    """An agent is added before it is started: others may start meanwhile."""

    def __init__(self, max_at_once: int) -> None:
        self._max_at_once = max_at_once
        self._live: dict[str, LiveAgent] = {}

    def add(self, agent: LiveAgent) -> None:
        """Raises `ToolError`: BUSY if too many run or it runs already, INPUT if its name is taken."""
        if agent.id in self._live:
            raise self.still_running(agent.id)
        mine = ", ".join(str(one) for one in self._live.values() if one.principal == agent.principal)
        if len(self._live) >= self._max_at_once:
            raise ToolError(
                ErrorCode.BUSY,
                f"{len(self._live)} agents run already, which is the most there can be (agent.max_at_once)",
                f"Wait for one of yours: {mine}." if mine else "Try again later.",
            )
        if agent.name and self.find(agent.name, agent.principal) is not None:
            raise ToolError(
                ErrorCode.INPUT,
                f"name: a running agent is called {agent.name!r} already",
                f"Choose another name, or none. Running: {mine}.",
            )
        self._live[agent.id] = agent

    def remove(self, agent_id: str) -> None:
        self._live.pop(agent_id, None)

    def of_principal(self, principal: str) -> list[LiveAgent]:
        """Oldest first."""
        return [agent for agent in self._live.values() if agent.principal == principal]

    def find(self, id_or_name: str, principal: str) -> LiveAgent | None:
        return next(
            (
                agent
                for agent in self._live.values()
                if agent.principal == principal and id_or_name in (agent.id, agent.name)
            ),
            None,
        )

    def check_has_ended(self, id_or_name: str, principal: str) -> None:
        """Raises `ToolError(BUSY)` if it runs."""
        if self.find(id_or_name, principal) is not None:
            raise self.still_running(id_or_name)

    def still_running(self, id_or_name: str) -> ToolError:
        return ToolError(
            ErrorCode.BUSY,
            f"agent {id_or_name[:80]} still runs",
            "Wait for it with TaskOutput, or end it with TaskStop.",
        )


CLOSING_LIMIT_S = 20.0
_SHOWN_BROKEN = 3
_WORKTREE_NAME_CHARS = 30


@dataclass(frozen=True)
class StartedAgent:
    """A running agent. `broken_types` are agent files that cannot be used."""

    task: Task
    work: AgentTask
    type: AgentType
    broken_types: tuple[str, ...]

    @property
    def id(self) -> str:
        return self.task.id

    @property
    def name(self) -> str:
        return self.task.name


@dataclass(frozen=True, kw_only=True)
class Spawner:
    """At most `options.max_at_once` agents run, nested ones included. `tools` are those of the client's catalog.

    `on_finished` is called after each agent that ended by itself, with id, type, final answer and the call that
    started it. It returns notices for whoever started the agent.
    """

    workspace: Workspace
    sessions: Sessions
    tasks: TaskManager
    spill: SpillFiles
    telemetry: Telemetry
    redactor: Redactor
    options: AgentOptions
    engines: Engines
    types: TypeFiles
    records: AgentRecords
    worktrees: Worktrees
    tools: Callable[[Rights], Sequence[AnyTool]]
    tools_of_turn: Callable[[ToolContext], Sequence[AnyTool]] | None = None
    """Set if the tools can change from turn to turn."""
    takeover: AgentTakeover | None = None
    """Set on one of several replicas."""
    on_finished: Callable[[str, str, str, ToolContext], Awaitable[tuple[str, ...]]] | None = None

    @cached_property
    def live(self) -> LiveAgents:
        return LiveAgents(self.options.max_at_once)

    async def start(self, request: SpawnRequest, ctx: ToolContext) -> StartedAgent:
        """Start an agent for a call; it runs until it ends, or its task is stopped.

        Raises `ToolError`: INPUT, CONFIG (type), TASK_UNKNOWN (resume), NOT_CONFIGURED (engine), BUSY, PERMISSION
        (nested too deep). Nothing is left behind then.
        """
        if ctx.rights.depth >= MAX_DEPTH:
            raise ToolError(
                ErrorCode.PERMISSION, f"agents are nested {MAX_DEPTH} deep already", "Do this part yourself."
            )
        record = await self._record(request, ctx)
        type, broken_types = await self._type(request, record)
        chosen = self._engine(request, ctx, record)
        if request.mail is None and request.inbox is None and chosen.engine.resumes_from == "messages":
            # A program gets its whole input at its start.
            request = replace(request, inbox=Inbox())
        one = AgentStart(
            request=request,
            ctx=ctx,
            type=type,
            chosen=chosen,
            agent_id=request.agent_id or new_task_id() if record is None else record.facts.id,
            record=record,
            options=self.options,
        )
        self.live.add(
            LiveAgent(
                one.agent_id,
                ctx.principal,
                one.name,
                request.title,
                type=type.name,
                profiles=ctx.rights.profiles,
                started_by=ctx.session_key,
                inbox=request.inbox,
            )
        )
        worktree: Worktree | None = None
        work: AgentTask | None = None
        try:
            worktree = await self._worktree(one)
            work = AgentTask(
                one.agent_id, request.title, self._output_file, outlives_calls=one.chosen.engine.outlives_calls
            )
            work.can_be_resumed = one.record is not None
            work.notices = one.notices
            job = one.job(work, worktree, self.workspace.primary, self.tools, self.tools_of_turn)
            task = await self.tasks.adopt(
                work,
                principal=ctx.principal,
                session_key=ctx.session_key,
                task_id=one.agent_id,
                name=one.name,
                restart_data=self._restart_data(one),
            )
        except BaseException:
            self.live.remove(one.agent_id)
            if work is not None:
                work.discard_output()
            if worktree is not None:
                with anyio.move_on_after(CLOSING_LIMIT_S, shield=True):
                    await self.worktrees.close(worktree)
            raise
        session = self.sessions.of(one.session_key)
        if worktree is not None and session.cwd is None:
            session.cwd = job.directory
        body = partial(self._run, one, job, work, worktree)
        work.start(partial(self._with_redacted_errors, body), partial(self._on_bug, one.agent_id))
        return StartedAgent(task, work, type, broken_types)

    async def discard(self, agent: StartedAgent) -> None:
        """Remove the task and the output file of an agent that failed before it did anything."""
        await self.tasks.forget(agent.task)
        agent.work.discard_output()

    async def _record(self, request: SpawnRequest, ctx: ToolContext) -> AgentRecord | None:
        if not request.resume:
            return None
        self.live.check_has_ended(request.resume, ctx.principal)
        if self.takeover is not None and (data := await self.takeover.fetch(request.resume)) is not None:
            await anyio.to_thread.run_sync(self.records.keep, data)
        find = partial(self.records.find, request.resume, ctx.principal, self._workspace_name())
        record = await anyio.to_thread.run_sync(find)
        if await self.tasks.runs_elsewhere(record.facts.id, ctx.principal):
            raise self.live.still_running(request.resume)
        return record

    def _restart_data(self, one: AgentStart) -> Mapping[str, Any] | None:
        """What another replica needs to go on with an agent that was started in the background. If a call waits for it,
        it ends with the call; an agent of an agent ends with that; members of a team stay where the team is."""
        engine, in_background = one.chosen.engine, one.request.background or one.type.background
        if self.takeover is None or not in_background or one.ctx.rights.depth or one.request.mail is not None:
            return None
        can_go_on = engine.outlives_calls and engine.resumes_from == "messages"
        return self.takeover.restart_data(one.request, one.ctx) if can_go_on else None

    async def _type(self, request: SpawnRequest, record: AgentRecord | None) -> tuple[AgentType, tuple[str, ...]]:
        known = await self.types.read()
        asked = request.type_name or (DEFAULT_TYPE if record is None else record.facts.type)
        if record is not None and asked != record.facts.type:
            raise ToolError(
                ErrorCode.INPUT,
                f"subagent_type: agent {record.facts.id} is of type {record.facts.type}",
                "Leave out subagent_type to resume it.",
            )
        return known.get(asked), tuple(str(file) for file in known.broken[:_SHOWN_BROKEN])

    def _engine(self, request: SpawnRequest, ctx: ToolContext, record: AgentRecord | None) -> EngineChoice:
        resumes_from = ""
        if record is not None:
            resumes_from = "token" if record.facts.resume_token else "messages"
        chosen = self.engines.choose(ctx, resumes_from=resumes_from)
        if request.background and not chosen.engine.outlives_calls:
            waits_for = "mail" if request.mail is not None else ""
            if request.inbox is not None and request.inbox.is_persistent:
                waits_for = "requests"
            if waits_for:
                raise ToolError(
                    ErrorCode.INPUT,
                    f"an agent that waits for {waits_for} goes on after this call, and the client's own model can only "
                    "be asked while a call waits",
                    "Use Agent for a single task; the user can set agent.base_url to a model that has no client.",
                )
            raise ToolError(
                ErrorCode.INPUT,
                "run_in_background: the client's own model can only be asked while a call waits",
                "Call again without run_in_background; the user can set agent.base_url to a model that has no client.",
            )
        return chosen

    async def _worktree(self, one: AgentStart) -> Worktree | None:
        if one.record is not None and (kept := self.worktrees.existing(one.record.facts.worktree)) is not None:
            return kept
        if one.isolation == "remote":
            raise ToolError(
                ErrorCode.NOT_CONFIGURED,
                "isolation: there is no remote machine to run agents on",
                "Use isolation: worktree, or leave it out.",
            )
        starters = one.ctx.rights.writes_below
        if starters and one.request.isolation:
            raise ToolError(
                ErrorCode.INPUT,
                f"isolation: you work in the worktree {starters} yourself, and so will your agents",
                "Leave out isolation.",
            )
        if one.isolation != "worktree" or starters:
            return None
        stem = (one.name or one.type.name)[:_WORKTREE_NAME_CHARS]
        return await self.worktrees.create(f"{stem}-{one.agent_id[:8]}")

    async def _run(
        self, one: AgentStart, job: AgentJob, work: AgentTask, worktree: Worktree | None, on_event: OnEvent
    ) -> AgentOutcome:
        """Run the agent, then clean up."""
        outcome: AgentOutcome | None = None
        transcript = self._transcript(one, worktree)

        def on_event_or_state(event: Activity | AgentState) -> None:
            on_event(event)
            if isinstance(event, AgentState):
                transcript.put(event)
                if self.takeover is not None:
                    record = one.to_record(event, worktree, self._workspace_name())
                    self.takeover.put(one.agent_id, record)

        try:
            async with transcript.writing():
                outcome = await one.chosen.engine.run(job, on_event_or_state)
            return outcome
        finally:
            with anyio.move_on_after(CLOSING_LIMIT_S, shield=True):
                await self._close(one, work, worktree, outcome)
            self.live.remove(one.agent_id)
            if one.request.inbox is not None:
                one.request.inbox.close(outcome)

    def _transcript(self, one: AgentStart, worktree: Worktree | None) -> RunningTranscript:
        def write(state: AgentState) -> None:
            if (record := one.to_record(state, worktree, self._workspace_name())) is not None:
                self.records.write(record, has_ended=False)

        return RunningTranscript(write, partial(self._on_storage_error, one.agent_id))

    def _on_storage_error(self, agent_id: str, problem: OSError) -> None:
        self.telemetry.warning("agent cannot be kept", agent=agent_id, problem=str(problem))

    async def _close(
        self, one: AgentStart, work: AgentTask, worktree: Worktree | None, outcome: AgentOutcome | None
    ) -> None:
        if outcome is None:
            await self.tasks.stop_started_by(one.session_key)
        left = [task for task in self.tasks.running(one.ctx.principal) if task.started_by == one.session_key]
        if left:
            shown = ", ".join(f"task {task.id} ({task.work.title[:60]})" for task in left)
            work.notices += (f"it left running: {shown}",)
        if outcome is not None and self.on_finished is not None:
            work.notices += await self.on_finished(one.agent_id, one.type.name, outcome.state.text, one.ctx)
        kept = worktree if worktree is not None and await self.worktrees.close(worktree) else None
        if kept is not None:
            work.notices += (f"its changes are in the worktree {kept.top} on branch {kept.branch}",)
        state = work.state if outcome is None else outcome.state
        record = one.to_record(state, kept, self._workspace_name())
        if record is not None:
            if self.takeover is not None:
                await self.takeover.end(record)
            try:
                work.can_be_resumed = await anyio.to_thread.run_sync(self.records.write, record)
            except OSError as problem:
                self._on_storage_error(one.agent_id, problem)
                work.can_be_resumed = False
                work.notices += ("it cannot be resumed: its transcript could not be stored",)

    async def _with_redacted_errors(self, body: Body, on_event: OnEvent) -> AgentOutcome:
        """The error text of a program or an endpoint may hold the key it was given."""
        try:
            return await body(on_event)
        except ToolError as error:
            raise redacted_error(error, self.redactor) from None

    def _on_bug(self, agent_id: str, bug: Exception) -> None:
        self.telemetry.unexpected(agent_id, "Agent", bug)

    def _output_file(self, stem: str) -> tuple[Path, int]:
        try:
            return self.spill.create("agent")
        except OSError as problem:
            raise ToolError(
                ErrorCode.IO, f"the agent's output file cannot be made: {problem.strerror}", "Try again later."
            ) from None

    def _workspace_name(self) -> str:
        roots = self.workspace.roots
        return str(roots[0]) if roots else ""
