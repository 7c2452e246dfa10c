"""What a user can configure about subagents: the settings `agent.*`. Those of a model endpoint are the models' own."""

from __future__ import annotations

from pydantic import Field

from goat_mcp.models.options import ModelOptions

MAX_DEPTH = 2
"""An agent may start agents, and those may not (contract: tools.md, Agent)."""


class AgentOptions(ModelOptions):
    """`model` is used where neither the call nor the agent's type names one; empty is the engine's own.

    `max_tokens` bounds one reply of the model.
    """

    max_turns: int = Field(default=50, ge=1, le=500)
    max_at_once: int = Field(default=10, ge=1, le=30)
    max_tokens: int = Field(default=8192, ge=256, le=200_000)
