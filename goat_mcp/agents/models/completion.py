"""An endpoint's answer as a `ModelReply`. What is odd in it is mended where it can be, and refused where it cannot."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from goat_mcp.agents.models.messages import KEPT_META_KEY
from goat_mcp.catalog.openai_format import read_tool_calls
from goat_mcp.core.json_values import count, items, mapping
from goat_mcp.core.model import MALFORMED_META_KEY, ModelReply
from goat_mcp.core.result import Block, text_block

# Thoughts that a provider has signed and wants back with the results of the calls they led to.
_KEPT_OF_MESSAGE = ("reasoning_content", "reasoning_details", "thinking_blocks")
_KEPT_OF_CALL = ("extra_content", "provider_specific_fields")
_SHOWN_CHARS = 200


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
    mended: list[dict[str, Any]] = []
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
        mended.append({"id": id, "type": "function", "function": function})
    return mended


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
