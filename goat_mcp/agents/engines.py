"""Which engine runs an agent: the model of the settings, an agent command line, or the client's own model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from goat_mcp.agents.engine import Engine
from goat_mcp.agents.host_rounds import HostRounds
from goat_mcp.agents.loop import AgentLoop, CallTools
from goat_mcp.agents.models.local_endpoint import is_local
from goat_mcp.agents.models.options import ModelNames
from goat_mcp.agents.options import AgentOptions
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.model import ChatModel

_STEPS = (
    "The user can set agent.base_url (with agent.key and agent.model) to an OpenAI-compatible endpoint, or "
    "agent.command to an agent's command line, or use a client that offers its own model by sampling with tools."
)


@dataclass(frozen=True)
class ChosenEngine:
    """`host` is there where the client's own model runs the agent. `default_model` is what to ask an engine for that
    has no default of its own. `names` and `stand_in` are there where an endpoint has names of its own for the models,
    and another one for those it has no name for."""

    engine: Engine
    host: HostRounds | None = None
    default_model: str = ""
    names: ModelNames | None = None
    stand_in: str = ""

    def stands_in_for(self, model: str) -> str:
        """The model that runs in place of one that is asked for; empty where that one does."""
        is_unknown = self.names is not None and model in ModelNames.model_fields and not getattr(self.names, model)
        return self.stand_in if is_unknown and model != self.stand_in else ""


@dataclass(frozen=True)
class Engines:
    """The first that can do the work is used. `endpoint` gives the model of the settings, and of those a session has
    changed; it and `command_line` may be none."""

    call: CallTools
    endpoint: Callable[[Mapping[str, Any]], ChatModel | None]
    options: AgentOptions
    command_line: Engine | None = None

    def choose(self, ctx: ToolContext, *, resumes_from: str = "") -> ChosenEngine:
        """For an agent that a call starts; `resumes_from` is what it goes on from, if it was resumed.

        Raises `ToolError(NOT_CONFIGURED)` with the steps.
        """
        candidates = list(self._candidates(ctx))
        for candidate in candidates:
            if resumes_from in ("", candidate.engine.resumes_from):
                return candidate
        if candidates:
            raise ToolError(
                ErrorCode.NOT_CONFIGURED,
                "resume: the engine that ran this agent is not configured any more",
                "Start a new agent, with what it needs to know in its prompt.",
            )
        lacks_tools = ctx.host_model is not None and not ctx.host_model.takes_tools
        reason = "; this client's model takes no tools" if lacks_tools else ""
        raise ToolError(ErrorCode.NOT_CONFIGURED, f"no model is configured that could run an agent{reason}", _STEPS)

    def _candidates(self, ctx: ToolContext) -> Iterator[ChosenEngine]:
        max_tokens = self.options.max_tokens
        default_model = str(ctx.overrides.get("agent.model", self.options.model))
        if (endpoint := self.endpoint(ctx.overrides)) is not None:
            loop = AgentLoop(
                endpoint,
                self.call,
                "the model of agent.base_url",
                max_tokens=max_tokens,
                is_local=is_local(self.options.base_url),
            )
            yield ChosenEngine(loop, names=self.options.models, stand_in=default_model)
        if self.command_line is not None:
            yield ChosenEngine(self.command_line, default_model=default_model)
        if (host := HostRounds.of(ctx)) is not None:
            depth = ctx.rights.depth + 1
            loop = AgentLoop(
                host,
                self.call,
                "the client's own model",
                outlives_calls=False,
                max_tokens=max_tokens,
                is_last_turn=lambda: host.is_last(depth),
            )
            yield ChosenEngine(loop, host, default_model)
