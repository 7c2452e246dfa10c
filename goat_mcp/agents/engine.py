"""What runs an agent, as a Protocol: the loop over a chat model (`loop`), or another program (`command_line`).

Who may start agents, what they are called and what is kept of them is the spawner's business.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from goat_mcp.core.context import ToolContext
from goat_mcp.core.model import ModelMessage, ModelTool


class Mail(Protocol):
    """What others have to tell an agent while it works. Only members of a team have any."""

    async def between_turns(self) -> Sequence[str]:
        """What has come since the last turn; never waits."""
        ...

    async def when_idle(self, text: str) -> Sequence[str]:
        """The agent has said its last word `text`. Waits for something new to do; nothing means that it may end."""
        ...


@dataclass(frozen=True, kw_only=True)
class AgentJob:
    """One run of one agent, worked out: types, settings and the call are merged, rights are narrowed.

    `ctx` is the agent's own: its session key, its rights (`ctx.rights.allowed`, `denied`, `modes`); each tool call
    gets a copy with a call id of its own. `tools` are those its model is told of. `model` is an alias (`sonnet`), an
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
    """Begins a turn, where the tools may be others in each."""
    model: str = ""
    effort: str = ""
    earlier: tuple[ModelMessage, ...] = ()
    resume_token: str = ""
    mail: Mail | None = None


@dataclass(frozen=True, slots=True)
class Activity:
    """An agent has turned to something else: `thinking`, or a tool and what it is called with."""

    turn: int
    what: str


@dataclass(frozen=True, slots=True)
class AgentState:
    """How far an agent is, after each turn: enough to resume it, and to say what it had when it is stopped.

    `turns` and tokens count this run only; tokens are None where nobody counted. `text` is the newest thing the agent
    said. `messages` are for engines that resume from them, `resume_token` for those with sessions of their own.
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
    """A run that has ended by itself. `notices` are what its starter should know, e.g. that turns ran out."""

    state: AgentState
    notices: tuple[str, ...] = ()


OnEvent = Callable[[Activity | AgentState], None]
"""Told by an engine what goes on; never blocks and never raises."""


class Engine(Protocol):
    """Something that runs an agent to its end.

    `run` raises `ToolError` where it cannot, naming the setting to mend; a cancelled run ends within 2 s and leaves
    no process behind. `outlives_calls` is False where it needs the client's request to stay open (sampling).
    """

    @property
    def name(self) -> str:
        """In words, for logs and errors: `the model of agent.base_url`."""
        ...

    @property
    def outlives_calls(self) -> bool: ...

    @property
    def resumes_from(self) -> Literal["messages", "token"]:
        """What of an `AgentState` it goes on from."""
        ...

    async def run(self, job: AgentJob, on_event: OnEvent) -> AgentOutcome: ...
