"""What an agent and its model have said so far, and how much of it was counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from goat_mcp.agents.engine import AgentState
from goat_mcp.core.model import ModelMessage, ModelReply
from goat_mcp.core.result import Block, text_block


class Conversation:
    """Messages only a model could have refused: no empty ones, and each tool use has its result in the next one."""

    def __init__(self, earlier: Sequence[ModelMessage] = ()) -> None:
        self._messages = list(earlier)
        self.turns = 0
        self.text = ""
        """The newest thing the model said; a reply that was cut off is joined with what followed."""
        self._goes_on = False
        self._input_tokens: int | None = None
        self._output_tokens: int | None = None

    @property
    def messages(self) -> tuple[ModelMessage, ...]:
        return tuple(self._messages)

    def say(self, text: str) -> None:
        # A message of its own: one that holds tool results may hold nothing else (MCP sampling).
        self._messages.append(ModelMessage("user", (text_block(text),)))

    def hear(self, reply: ModelReply, tool_uses: Sequence[Block]) -> bool:
        """A reply of the model; `tool_uses` stand in for those in it. Returns whether it says anything."""
        self.turns += 1
        self._input_tokens = _sum(self._input_tokens, reply.input_tokens)
        self._output_tokens = _sum(self._output_tokens, reply.output_tokens)
        said = [block for block in reply.content if block.get("type") == "text" and str(block.get("text", "")).strip()]
        others = [block for block in reply.content if block.get("type") not in ("text", "tool_use")]
        if said:
            text = "\n".join(str(block["text"]) for block in said)
            self.text = self.text + text if self._goes_on else text
        self._goes_on = reply.stop_reason == "maxTokens" and not tool_uses
        if said or tool_uses:
            self._messages.append(ModelMessage("assistant", (*others, *said, *tool_uses)))
        return bool(said)

    def answer(self, results: Sequence[Block]) -> None:
        """What the tools that the last reply wants have given."""
        self._messages.append(ModelMessage("user", tuple(results)))

    def last_said(self) -> Mapping[str, Any]:
        """The model's last message, as JSON has it."""
        message = next(message for message in reversed(self._messages) if message.role == "assistant")
        return {"role": message.role, "content": [dict(block) for block in message.content]}

    def tool_use_ids(self) -> set[str]:
        blocks = (block for message in self._messages for block in message.content)
        return {str(block.get("id")) for block in blocks if block.get("type") == "tool_use"}

    def state(self, results: Sequence[Block] = ()) -> AgentState:
        """As it is, or would be with `results` as the answer to the last reply."""
        return AgentState(
            turns=self.turns,
            text=self.text,
            messages=(*self.messages, ModelMessage("user", tuple(results))) if results else self.messages,
            input_tokens=self._input_tokens,
            output_tokens=self._output_tokens,
        )


def _sum(one: int | None, two: int | None) -> int | None:
    return two if one is None else one + (two or 0)
