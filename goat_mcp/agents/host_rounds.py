"""How often one call may still ask its client, where a client stops after so many rounds of questions.

In 2026-07-28 each reply of the client's own model is such a round, and so is each approval. An agent has to say its
last word before they run out. In the handshake era there is no such limit.
"""

from __future__ import annotations

from goat_mcp.core.context import ToolContext
from goat_mcp.core.elicitation import Answer, Form, Reply
from goat_mcp.core.model import ChatModel, ModelReply, ModelRequest

MAX_ROUNDS = 9
"""Clients stop after ten; one round may have asked for their roots."""


class HostRounds:
    """The client's model and its person, counted together. A `ChatModel`, which nested agents share."""

    def __init__(self, model: ChatModel, ctx: ToolContext) -> None:
        self._model = model
        self._ask = ctx.ask
        self._left = MAX_ROUNDS if ctx.client_waits_since_s is not None else None

    @classmethod
    def of(cls, ctx: ToolContext) -> HostRounds | None:
        """The counter of this call; None where the client has no model that takes tools."""
        model = ctx.host_model
        if model is None or not model.takes_tools:
            return None
        return model if isinstance(model, HostRounds) else cls(model, ctx)

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
