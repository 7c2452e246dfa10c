"""The client's own model through MCP sampling, as a `ChatModel`."""

from __future__ import annotations

import json
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.model import ModelReply, ModelRequest
from goat_mcp.server.client_channel import ClientChannel

_BLOCKS: TypeAdapter[list[Any]] = TypeAdapter(list[types.SamplingMessageContentBlock])


class HostModel:
    """Every reply is a question to the client, which may ask its user first."""

    def __init__(self, dialogue: ClientChannel, capability: types.SamplingCapability) -> None:
        self._dialogue = dialogue
        self.takes_tools = capability.tools is not None

    async def reply(self, request: ModelRequest) -> ModelReply:
        """Raises `ToolError(MODEL)` where the client or its user refuses."""
        tools = [
            types.Tool(name=tool.name, description=tool.description, input_schema=tool.input_schema)
            for tool in request.tools
        ]
        if tools and not self.takes_tools:
            raise ToolError(ErrorCode.MODEL, "this client's model takes no tools", "Configure agent.base_url instead.")
        params = types.CreateMessageRequestParams(
            messages=[
                types.SamplingMessage(role=message.role, content=_BLOCKS.validate_python(list(message.content)))
                for message in request.messages
            ],
            max_tokens=request.max_tokens,
            system_prompt=request.system or None,
            model_preferences=types.ModelPreferences(hints=[types.ModelHint(name=request.model)])
            if request.model
            else None,
            tools=tools or None,
        )
        answer = types.CreateMessageResultWithTools if tools else types.CreateMessageResult
        try:
            result = await self._dialogue.ask(types.CreateMessageRequest(params=params), answer)
        except MCPError as refused:
            raise ToolError(
                ErrorCode.MODEL,
                f"the client's model gave no answer: {refused.error.message[:300]}",
                "Ask the user; a model of their own can be set with agent.base_url.",
            ) from None
        content = result.content if isinstance(result.content, list) else [result.content]
        blocks = json.loads(_BLOCKS.dump_json(content, by_alias=True, exclude_none=True))
        return ModelReply(content=tuple(blocks), stop_reason=result.stop_reason or "endTurn", model=result.model)
