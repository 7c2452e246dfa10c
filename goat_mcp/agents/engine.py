"""What runs an agent, as a Protocol: the loop over a chat model (`loop`), or another program (`command_line`).

The spawner decides who may start agents, their names, and what is stored of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from goat_mcp.core.context import ToolContext
from goat_mcp.core.model import ModelMessage, ModelTool


class Mail(Protocol):
    """Messages of others to an agent while it works."""

    async def between_turns(self) -> Sequence[str]:
        """The messages since the last turn; never waits."""
        ...

    async def when_idle(self, text: str) -> Sequence[str]:
        """The agent has given its final answer `text`. Waits for new work; nothing means that it ends."""
        ...


@dataclass(frozen=True, kw_only=True)
class AgentJob:
    """One run of one agent, worked out: types, settings and the call are merged, rights are narrowed.

    `ctx` is the agent's own: its session key, its rights (`ctx.rights.allowed`, `denied`, `modes`); each tool call
    gets a copy with a call id of its own. `tools` are those its model can call. `model` is an alias (`sonnet`), an
    id, or empty for the engine's own; `effort` is low to max, or empty. `earlier` and `resume_token` are what the
    `AgentState` of an earlier run of the same agent held; an engine uses the one it understands.
    """

    agent_id: str
    prompt: str
    system: str
    directory: Path
    ctx: ToolContext
    max_turns: int
    title: str = ""
    tools: tuple[ModelTool, ...] = ()
    tools_of_turn: Callable[[], tuple[ModelTool, ...]] | None = None
    """The tools of the next turn, if they can change from turn to turn."""
    model: str = ""
    effort: str = ""
    earlier: tuple[ModelMessage, ...] = ()
    resume_token: str = ""
    mail: Mail | None = None


@dataclass(frozen=True, slots=True)
class Activity:
    """What an agent does now: `thinking`, or a tool and its main argument."""

    turn: int
    what: str


@dataclass(frozen=True, slots=True)
class AgentState:
    """The state of an agent after a turn: enough to resume it, and to show what it had when it is stopped.

    `turns` and tokens count this run only; tokens are None if nobody counted. `text` is the newest text of the
    agent. `messages` are for engines that resume from them, `resume_token` for those with sessions of their own.
    """

    turns: int
    text: str
    messages: tuple[ModelMessage, ...] = ()
    resume_token: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None


def add_counts(one: int | None, two: int | None) -> int | None:
    """None if nobody counted."""
    return two if one is None else one + (two or 0)


@dataclass(frozen=True, slots=True)
class AgentOutcome:
    """A run that has ended by itself. `notices` are for whoever started it, e.g. that turns ran out."""

    state: AgentState
    notices: tuple[str, ...] = ()


OnEvent = Callable[[Activity | AgentState], None]
"""Called by an engine with each event; never blocks and never raises."""


class Engine(Protocol):
    """Something that runs an agent to its end.

    `run` raises `ToolError` if it cannot, naming the setting to fix; a cancelled run ends within 2 s and leaves
    no process behind. `outlives_calls` is False if it needs the client's request to stay open (sampling).
    """

    @property
    def name(self) -> str:
        """In words, for logs and errors: `the model of agent.base_url`."""
        ...

    @property
    def outlives_calls(self) -> bool: ...

    @property
    def resumes_from(self) -> Literal["messages", "token"]:
        """Which part of an `AgentState` it continues from."""
        ...

    async def run(self, job: AgentJob, on_event: OnEvent) -> AgentOutcome: ...
