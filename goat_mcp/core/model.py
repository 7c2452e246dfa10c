"""A language model as agents and summaries see it: an endpoint, or the host's model through sampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

from goat_mcp.core.result import Block

MALFORMED_META_KEY = "goat-mcp/malformed-arguments"
"""`_meta` key of a tool use whose arguments cannot be used (its `input` is empty); the value says why."""


@dataclass(frozen=True, slots=True)
class ModelMessage:
    """One turn. Blocks are wire dictionaries of MCP sampling.

    `{"type": "text", "text"}`, `{"type": "image", "data", "mimeType"}`,
    `{"type": "tool_use", "id", "name", "input"}`,
    `{"type": "tool_result", "toolUseId", "content": [blocks], "isError"}`.
    """

    role: Literal["user", "assistant"]
    content: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class ModelTool:
    """A tool as a model sees it."""

    name: str
    description: str
    input_schema: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """`model` is what the caller asked for (`sonnet`, an id) or empty; `effort` is low to max or empty."""

    messages: tuple[ModelMessage, ...]
    system: str = ""
    tools: tuple[ModelTool, ...] = ()
    max_tokens: int = 8192
    model: str = ""
    effort: str = ""


@dataclass(frozen=True, slots=True)
class ModelReply:
    """`stop_reason` is MCP's: endTurn, maxTokens, toolUse, stopSequence. Tokens are None if nobody counted."""

    content: tuple[Block, ...]
    stop_reason: str = "endTurn"
    model: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None

    @property
    def text(self) -> str:
        return "\n".join(block["text"] for block in self.content if block.get("type") == "text")

    @property
    def tool_uses(self) -> tuple[Block, ...]:
        return tuple(block for block in self.content if block.get("type") == "tool_use")


def malformed_arguments(tool_use: Block) -> str:
    """Why the arguments a model wrote for this tool use cannot be used; empty if they can."""
    return str(tool_use.get("_meta", {}).get(MALFORMED_META_KEY, ""))


@dataclass(frozen=True, slots=True)
class CallingModel:
    """The model that makes a call: every name it is known by, and whether it runs where its user does."""

    names: tuple[str, ...]
    is_local: bool = False


class ChatModel(Protocol):
    """Something that answers a conversation. Raises `ToolError` if it cannot."""

    @property
    def takes_tools(self) -> bool: ...

    async def reply(self, request: ModelRequest) -> ModelReply: ...
