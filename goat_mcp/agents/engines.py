"""Which engine runs an agent: the model of the settings, an agent command line, or the client's own model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from goat_mcp.agents.engine import Engine
from goat_mcp.agents.loop import AgentLoop, CallTools
from goat_mcp.agents.models.choice import is_local
from goat_mcp.agents.options import AgentOptions, ModelNames
from goat_mcp.core.context import ToolContext
from goat_mcp.core.elicitation import Answer, Form, Reply
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.model import ChatModel, ModelReply, ModelRequest

_STEPS = (
    "The user can set agent.base_url (with agent.key and agent.model) to an OpenAI-compatible endpoint, or "
    "agent.command to an agent's command line, or use a client that offers its own model by sampling with tools."
)
MAX_ROUNDS = 9
"""Clients stop after ten; one round may have asked for their roots."""


@dataclass(frozen=True)
class EngineChoice:
    """`host` is set if the client's own model runs the agent. `default_model` is for an engine that has no default of
    its own. `names` are an endpoint's names of the models, `stand_in` its model for those without a name."""

    engine: Engine
    host: RoundLimitedModel | None = None
    default_model: str = ""
    names: ModelNames | None = None
    stand_in: str = ""

    def stands_in_for(self, model: str) -> str:
        """The model that runs instead of `model`; empty if `model` runs itself."""
        is_unknown = self.names is not None and model in ModelNames.model_fields and not getattr(self.names, model)
        return self.stand_in if is_unknown and model != self.stand_in else ""


@dataclass(frozen=True)
class Engines:
    """The first engine that can do the work is used. `endpoint` returns the model of the settings with a session's
    overrides, or None."""

    call: CallTools
    endpoint: Callable[[Mapping[str, Any]], ChatModel | None]
    options: AgentOptions
    command_line: Engine | None = None

    def choose(self, ctx: ToolContext, *, resumes_from: str = "") -> EngineChoice:
        """The engine for an agent that a call starts; `resumes_from` is set if the agent is resumed.

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

    def _candidates(self, ctx: ToolContext) -> Iterator[EngineChoice]:
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
            yield EngineChoice(loop, names=self.options.models, stand_in=default_model)
        if self.command_line is not None:
            yield EngineChoice(self.command_line, default_model=default_model)
        if (host := RoundLimitedModel.of(ctx)) is not None:
            depth = ctx.rights.depth + 1
            loop = AgentLoop(
                host,
                self.call,
                "the client's own model",
                outlives_calls=False,
                max_tokens=max_tokens,
                is_last_turn=lambda: host.is_last(depth),
            )
            yield EngineChoice(loop, host, default_model)


class RoundLimitedModel:
    """The client's model and its user, within the rounds that one call may still use. Nested agents share it.

    In 2026-07-28 each reply of the client's model is a round of a multi-round request, and so is each approval; a
    client stops after ten. An agent has to give its final answer before that. The handshake era has no such limit.
    """

    def __init__(self, model: ChatModel, ctx: ToolContext) -> None:
        self._model = model
        self._ask = ctx.ask
        self._left = MAX_ROUNDS if ctx.client_waits_since_s is not None else None

    @classmethod
    def of(cls, ctx: ToolContext) -> RoundLimitedModel | None:
        """The one of this call; None if the client has no model that takes tools."""
        model = ctx.host_model
        if model is None or not model.takes_tools:
            return None
        return model if isinstance(model, RoundLimitedModel) else cls(model, ctx)

    @property
    def takes_tools(self) -> bool:
        return True

    def is_last(self, depth: int) -> bool:
        """Whether an agent at this depth must end with its next turn: those that wait for it need one each."""
        return self._left is not None and self._left <= depth

    async def reply(self, request: ModelRequest) -> ModelReply:
        self._spend()
        return await self._model.reply(request)

    async def ask(self, form: Form) -> Answer:
        """The last round is for the agent's answer, not for one more approval."""
        if self._left is not None and self._left <= 1:
            return Answer(Reply.UNAVAILABLE)
        self._spend()
        return await self._ask(form)

    def _spend(self) -> None:
        if self._left is not None:
            self._left -= 1
