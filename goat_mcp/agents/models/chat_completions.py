"""OpenAI's chat completions: a conversation as the endpoint expects it, and its answer as a `ModelReply`.

An irregular answer is repaired if it can be, and rejected otherwise.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from goat_mcp.catalog.openai_format import read_tool_calls, tool_message
from goat_mcp.core.json_values import count, items, mapping
from goat_mcp.core.model import MALFORMED_META_KEY, ModelMessage, ModelReply, ModelRequest
from goat_mcp.core.result import Block, ToolResult, text_block

KEPT_META_KEY = "goat-mcp/kept"
"""`_meta` key of a block: members of the endpoint's own that it wants back unchanged, such as signed thoughts."""
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_MAX_NAME_CHARS = 64
_NO_RESULT = "nothing is known of what became of this call"

# Thoughts that a provider has signed and wants back with the results of the calls they led to.
_KEPT_OF_MESSAGE = ("reasoning_content", "reasoning_details", "thinking_blocks")
_KEPT_OF_CALL = ("extra_content", "provider_specific_fields")
_SHOWN_CHARS = 200


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


class NotACompletion(ValueError):
    """The answer is none of a chat completion; the text says what it is instead."""


def read_completion(body: bytes) -> ModelReply:
    """Raises `NotACompletion`."""
    try:
        answer: Any = json.loads(body)
    except (ValueError, RecursionError):
        shown = body[:_SHOWN_CHARS].decode("utf-8", "replace").strip()
        raise NotACompletion(f"no JSON: {shown!r}" if shown else "nothing at all") from None
    choices = mapping(answer).get("choices")
    if not isinstance(choices, list) or not choices:
        raise NotACompletion(f"without choices: {_shown(answer)}")
    choice = mapping(cast("list[Any]", choices)[0])
    message = choice.get("message")
    if not isinstance(message, dict):
        raise NotACompletion(f"without a message: {_shown(answer)}")
    message = cast("dict[str, Any]", message)
    content = _content(message)
    finish_reason = str(choice.get("finish_reason") or "")
    if not content and finish_reason == "content_filter":
        raise NotACompletion("withheld by the provider's content filter")
    usage = mapping(mapping(answer).get("usage"))
    return ModelReply(
        content=tuple(content),
        stop_reason=_stop_reason(finish_reason, content),
        model=str(mapping(answer).get("model") or ""),
        input_tokens=count(usage.get("prompt_tokens")),
        output_tokens=count(usage.get("completion_tokens")),
    )


def _content(message: Mapping[str, Any]) -> list[Block]:
    text = _text(message.get("content")) or _text(message.get("refusal"))
    blocks = [text_block(text)] if text else []
    blocks += _tool_uses(message.get("tool_calls"))
    kept = {name: message[name] for name in _KEPT_OF_MESSAGE if message.get(name)}
    if blocks and kept:
        _keep(blocks[0], "message", kept)
    return blocks


def _text(content: Any) -> str:
    """Some endpoints answer in parts."""
    if isinstance(content, list):
        parts = [mapping(part) for part in cast("list[Any]", content)]
        return "".join(str(part.get("text", "")) for part in parts if part.get("type") == "text")
    return content if isinstance(content, str) else ""


def _tool_uses(given: Any) -> list[Block]:
    calls = [mapping(call) for call in items(given)]
    uses: list[Block] = []
    for call, read in zip(calls, read_tool_calls(_with_ids(calls)), strict=True):
        use: Block = {"type": "tool_use", "id": read.id, "name": read.name, "input": dict(read.arguments)}
        if read.problem is not None:
            use["_meta"] = {MALFORMED_META_KEY: read.problem.message}
        kept = {name: call[name] for name in _KEPT_OF_CALL if call.get(name)}
        if kept:
            _keep(use, "call", kept)
        uses.append(use)
    return uses


def _with_ids(calls: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Some endpoints give calls no id, or all the same; results could not be told apart. Arguments come as objects."""
    repaired: list[dict[str, Any]] = []
    taken: set[str] = set()
    for number, call in enumerate(calls):
        id = call.get("id")
        if not isinstance(id, str) or not id or id in taken:
            id = f"call_{number}"
            while id in taken:
                id += "_"
        taken.add(id)
        function = dict(mapping(call.get("function")))
        if isinstance(function.get("arguments"), dict):
            function["arguments"] = json.dumps(function["arguments"])
        elif function.get("arguments") is None:
            function["arguments"] = ""
        repaired.append({"id": id, "type": "function", "function": function})
    return repaired


def _keep(block: Block, of: str, members: Mapping[str, Any]) -> None:
    kept = block.setdefault("_meta", {}).setdefault(KEPT_META_KEY, {})
    kept[of] = dict(members)


def _stop_reason(finish_reason: str, content: Sequence[Block]) -> str:
    if finish_reason == "length":
        return "maxTokens"
    # Endpoints say `stop` beside calls, and `tool_calls` without any.
    return "toolUse" if any(block["type"] == "tool_use" for block in content) else "endTurn"


def _shown(answer: Any) -> str:
    return json.dumps(answer, ensure_ascii=False)[:_SHOWN_CHARS]
