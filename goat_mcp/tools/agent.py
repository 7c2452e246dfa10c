"""Agent: hand a task to a subagent. What agents are, and everything that runs them, is `goat_mcp.agents`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from goat_mcp.core.arguments import ToolInput
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.result import ToolResult, text_result
from goat_mcp.core.side_effect import Hints, SideEffect
from goat_mcp.core.spec import ToolExample
from goat_mcp.core.tool import BuiltinTool

if TYPE_CHECKING:  # the machinery is loaded when the first agent starts
    from goat_mcp.agents.spawner import Spawner, StartedAgent
    from goat_mcp.agents.teams.coordinator import TeamCoordinator

_TITLE_CHARS = 100


class AgentInput(ToolInput):
    text_fields: ClassVar[frozenset[str]] = frozenset({"prompt", "description"})

    description: str = Field(description="3-5 words")
    prompt: str = Field(min_length=1)
    subagent_type: str | None = Field(
        None, description="general-purpose (default), explorer, planner, or one of .claude/agents"
    )
    model: Literal["sonnet", "opus", "haiku", "fable"] | None = None
    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    run_in_background: bool = False
    name: str | None = Field(None, pattern="^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")
    isolation: Literal["worktree", "remote"] | None = None
    resume: str | None = Field(None, description="Id or name of an ended agent to go on with")
    max_turns: int | None = Field(None, ge=1)
    mode: Literal["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"] | None = Field(
        None, description="Only narrows"
    )
    team_name: str | None = Field(None, description="Joins your team, in the background")


@dataclass(frozen=True)
class Agent(
    BuiltinTool[AgentInput],
    side_effect=SideEffect.SPAWNS,
    toolset="agent",
    title="Start a subagent",
    hints=Hints(read_only=False, destructive=True, idempotent=False, open_world=True),
):
    """Hand a task to an agent that works on its own, with no more rights than you have.

    It sees only `prompt` and asks nobody: put in all it must know and what to report. Returns its last message and
    its id. Calls of one turn run side by side; one that takes 45 s becomes a background task: see TaskOutput.
    """

    examples = (
        ToolExample(
            "Find something without reading it all yourself",
            {
                "description": "Find retry logic",
                "prompt": "Where does this code base retry HTTP requests? Report files and lines, and the delays used.",
                "subagent_type": "explorer",
            },
        ),
        ToolExample(
            "A change beside your own work",
            {
                "description": "Port tests to pytest",
                "prompt": "Port tests/legacy/*.py from unittest to pytest, keep every case, run them, report failures.",
                "run_in_background": True,
                "name": "porter",
                "isolation": "worktree",
            },
        ),
    )

    spawner: Callable[[], Spawner]
    teams: Callable[[], TeamCoordinator]

    async def execute(self, input: AgentInput, ctx: ToolContext) -> ToolResult:
        from goat_mcp.agents.agent_start import SpawnRequest

        request = SpawnRequest(
            title=" ".join((input.description or input.prompt).split())[:_TITLE_CHARS],
            prompt=input.prompt,
            type_name=input.subagent_type or "",
            model=input.model or "",
            effort=input.effort or "",
            mode=input.mode or "",
            name=input.name or "",
            isolation=input.isolation or "",
            resume=input.resume or "",
            max_turns=input.max_turns,
            background=input.run_in_background,
        )
        spawner = self.spawner()
        if input.team_name:
            agent = await self.teams().join(input.team_name, request, ctx)
            notices = [f"{agent.name} is a member of team {input.team_name}: write to it with SendMessage"]
        else:
            agent = await spawner.start(request, ctx)
            notices = []
        notices += agent.broken_types
        wanted_by_type = agent.type.background and agent.work.outlives_calls
        if (input.max_turns or 0) > (most := spawner.options.max_turns):
            notices.append(f"max_turns {input.max_turns} was reduced to {most} (agent.max_turns)")
        goes_on = input.run_in_background or input.team_name or wanted_by_type
        if goes_on or not await agent.work.attend(ctx):
            return _running(agent, notices)
        return await _ended(spawner, agent, notices)


def _running(agent: StartedAgent, notices: list[str]) -> ToolResult:
    notices = [
        *notices,
        f"agent {_called(agent)} works in the background; TaskOutput waits for it, TaskStop ends it",
        f"its progress goes to {agent.work.output_file}",
    ]
    facts = {**_facts(agent, "running"), "task_id": agent.id}
    return text_result(f"Task started: {agent.id}", facts=facts, notices=notices, task_id=agent.id)


async def _ended(spawner: Spawner, agent: StartedAgent, notices: list[str]) -> ToolResult:
    work = agent.work
    error, outcome = work.error, work.outcome
    if outcome is not None and outcome.status == "stopped":
        step = (
            f"Go on with it by resume: {agent.id}." if work.can_be_resumed else "Start a new one if it is still needed."
        )
        error = ToolError(ErrorCode.CANCELLED, "the agent was stopped", step)
    notices = [*work.notices, *notices]
    if error is None:
        resumable = "; resume with its id to go on" if work.can_be_resumed else ""
        notices.append(f"agent {_called(agent)}: {_effort(agent)}{resumable}")
        return text_result(work.state.text, facts=_facts(agent, "completed"), notices=notices)
    if work.state.turns == 0:
        await spawner.discard(agent)
        raise error
    kept = f"Its work so far is kept: resume: {agent.id}." if work.can_be_resumed else ""
    suggestion = f"{error.suggestion} {kept}".strip()
    output = "\n".join([work.state.text, *(f"[{notice}]" for notice in notices)]).strip()
    raise ToolError(error.code, error.message, suggestion, facts=_facts(agent, "failed"), output=output)


def _called(agent: StartedAgent) -> str:
    return f"{agent.id} ({agent.name or agent.type.name})"


def _effort(agent: StartedAgent) -> str:
    turns, tokens = agent.work.state.turns, agent.work.tokens
    counted = "" if tokens is None else f", {tokens:,} tokens"
    return f"{turns} turn{'' if turns == 1 else 's'}{counted}, {agent.work.seconds:.1f} s"


def _facts(agent: StartedAgent, status: str) -> Mapping[str, Any]:
    path = agent.work.output_file
    return {
        "agent_id": agent.id,
        "status": status,
        "output_file": None if path is None else str(path),
        "turns": agent.work.state.turns,
        "tokens": agent.work.tokens,
        "duration_ms": round(agent.work.seconds * 1000),
    }
