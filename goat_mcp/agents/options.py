"""What a user can configure about subagents: the settings `agent.*`. Those of a model endpoint are the models' own."""

from __future__ import annotations

from pydantic import Field

from goat_mcp.agents.command_words import CommandWords
from goat_mcp.agents.models.options import ModelOptions

MAX_DEPTH = 2
"""An agent may start agents, and those may not (contract: tools.md, Agent)."""


class AgentOptions(ModelOptions):
    """`model` is used where neither the call nor the agent's type names one; empty is the engine's own.

    `max_tokens` bounds one reply of the model.

    `command` runs agents with another program in place of a model; see `agents.command_line` for what that means.
    `command_env` names variables of ours that the program gets beside the usual ones, e.g. ANTHROPIC_API_KEY.
    """

    max_turns: int = Field(default=50, ge=1, le=500)
    max_at_once: int = Field(default=10, ge=1, le=30)
    max_tokens: int = Field(default=8192, ge=256, le=200_000)
    command: CommandWords = ()
    command_env: tuple[str, ...] = ()
    command_timeout_s: float = Field(default=3600.0, gt=0, le=86_400)
