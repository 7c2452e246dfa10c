"""A conversation as OpenAI's chat completions want it. What comes back is read in `completion`."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, cast

from goat_mcp.catalog.openai_format import tool_message
from goat_mcp.core.model import ModelMessage, ModelRequest
from goat_mcp.core.result import Block, ToolResult

KEPT_META_KEY = "goat-mcp/kept"
"""`_meta` key of a block: members of the endpoint's own that it wants back unchanged, such as signed thoughts."""
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_MAX_NAME_CHARS = 64
_NO_RESULT = "nothing is known of what became of this call"


def openai_messages(request: ModelRequest) -> list[dict[str, Any]]:
    """The `messages` of a request. Every tool use is followed by its result, as OpenAI insists, even if there is none.

    Images can only be a user's there: those in tool results follow in a message of their own.
    """
    messages: list[dict[str, Any]] = [{"role": "system", "content": request.system}] if request.system else []
    open_uses: list[str] = []
    for message in request.messages:
        if message.role == "assistant":
            messages.extend(_unanswered(open_uses))
            messages.append(_assistant(message))
            open_uses = [str(block["id"]) for block in message.content if block.get("type") == "tool_use"]
            continue
        results = [block for block in message.content if block.get("type") == "tool_result"]
        for block in results:
            messages.append(_tool_result(block))
        answered = {str(block["toolUseId"]) for block in results}
        messages.extend(_unanswered([use for use in open_uses if use not in answered]))
        open_uses = []
        parts = [part for block in results for part in _images(block)]
        parts += [part for block in message.content if (part := _user_part(block)) is not None]
        if parts:
            messages.append({"role": "user", "content": _plain_if_text(parts)})
    messages.extend(_unanswered(open_uses))
    return messages


def _assistant(message: ModelMessage) -> dict[str, Any]:
    text = "\n".join(block["text"] for block in message.content if block.get("type") == "text")
    calls = [_tool_call(block) for block in message.content if block.get("type") == "tool_use"]
    kept = _kept(message.content[0], "message") if message.content else {}
    # Some endpoints refuse `null`, others an empty text beside calls.
    answer: dict[str, Any] = {"role": "assistant", "content": text if text or not calls else None, **kept}
    if calls:
        answer["tool_calls"] = calls
    return answer


def _tool_call(block: Block) -> dict[str, Any]:
    # What a model has called a tool may be no name; repeated as it is, the whole conversation would be refused.
    name = _NOT_IN_NAMES.sub("_", block["name"])[:_MAX_NAME_CHARS] or "unnamed"
    function = {"name": name, "arguments": json.dumps(block["input"], ensure_ascii=False)}
    return {"id": block["id"], "type": "function", "function": function, **_kept(block, "call")}


def _kept(block: Block, of: str) -> dict[str, Any]:
    kept: Any = block.get("_meta", {}).get(KEPT_META_KEY, {})
    return cast("dict[str, Any]", kept.get(of, {}))


def _tool_result(block: Block) -> dict[str, Any]:
    content = tuple(inner for inner in _blocks(block) if inner.get("type") != "image")
    if not content and any(_images(block)):
        content = ({"type": "text", "text": "(an image, shown in the next message)"},)
    return tool_message(str(block["toolUseId"]), ToolResult(content, is_error=bool(block.get("isError"))))


def _unanswered(uses: Sequence[str]) -> list[dict[str, Any]]:
    lost = ToolResult(({"type": "text", "text": _NO_RESULT},), is_error=True)
    return [tool_message(use, lost) for use in uses]


def _images(block: Block) -> list[dict[str, Any]]:
    return [_image_part(inner) for inner in _blocks(block) if inner.get("type") == "image"]


def _blocks(tool_result: Block) -> Sequence[Block]:
    return cast("Sequence[Block]", tool_result.get("content") or ())


def _user_part(block: Block) -> dict[str, Any] | None:
    match block.get("type"):
        case "text":
            return {"type": "text", "text": block["text"]}
        case "image":
            return _image_part(block)
        case _:
            return None


def _image_part(block: Block) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:{block['mimeType']};base64,{block['data']}"}}


def _plain_if_text(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Text alone as text: not every endpoint takes a list of parts."""
    if all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return parts
