"""The tool uses of a model's reply, and their results as blocks that any model takes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from goat_mcp.core.errors import cut_middle
from goat_mcp.core.model import ModelReply, malformed_arguments
from goat_mcp.core.result import Block, ToolResult, text_block

_MAIN_ARGUMENTS = ("command", "file_path", "notebook_path", "pattern", "url", "query", "description", "path", "task_id")
_SUMMARY_CHARS = 80
_SHOWN_ARGUMENTS_CHARS = 200


@dataclass(frozen=True, slots=True)
class ToolUse:
    """`problem` says why it cannot be called; it is then answered without a call. `block` is its form in the history.

    `meta` is what a model's provider wants back with it, e.g. signed thoughts. `given_id` is the id as the model gave
    it, which may be that of an earlier use.
    """

    id: str
    name: str
    arguments: dict[str, Any]
    problem: str = ""
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    given_id: str = ""

    @property
    def block(self) -> Block:
        block: Block = {"type": "tool_use", "id": self.id, "name": self.name, "input": self.arguments}
        return {**block, "_meta": dict(self.meta)} if self.meta else block

    @property
    def summary(self) -> str:
        """The tool and its main argument, on one short line."""
        detail = next((str(self.arguments[key]) for key in _MAIN_ARGUMENTS if self.arguments.get(key)), "")
        return cut_middle(" ".join(f"{self.name} {detail}".split()), _SUMMARY_CHARS)


def read_tool_uses(reply: ModelReply, taken: set[str]) -> list[ToolUse]:
    """Never raises: a mistake of the model becomes a `problem`, which it gets as the result.

    Each gets an id that is not in `taken`, and is added there: some models start again at `call_0` in each turn, and
    others refuse a conversation with a repeated id.
    """
    uses: list[ToolUse] = []
    for block in reply.tool_uses:
        given = block.get("id")
        given_id = given if isinstance(given, str) else ""
        use_id = given_id if given_id and given_id not in taken else f"call_{len(taken)}_goat"
        taken.add(use_id)
        name = block.get("name")
        if not isinstance(name, str) or not name:
            uses.append(ToolUse(use_id, "unknown", {}, "this tool use names no tool"))
            continue
        if why := malformed_arguments(block):
            uses.append(ToolUse(use_id, name, {}, f"not run: {why}"))
            continue
        arguments, problem = _arguments(block.get("input"))
        uses.append(ToolUse(use_id, name, arguments, problem, block.get("_meta", {}), given_id))
    return uses


def _arguments(given: Any) -> tuple[dict[str, Any], str]:
    if isinstance(given, str) and given.strip():
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            shown = cut_middle(str(given), _SHOWN_ARGUMENTS_CHARS)
            return {}, f"not run: the arguments are not valid JSON: {shown}"
    if given is None or given == "":
        return {}, ""
    if not isinstance(given, dict):
        return {}, f"not run: the arguments are no JSON object but {type(given).__name__}"
    return {str(key): value for key, value in cast("dict[Any, Any]", given).items()}, ""


def tool_result(use: ToolUse, result: ToolResult) -> Block:
    """The result as the model sees it: text and images; other content is described in words."""
    content = [_for_model(block) for block in result.content if block.get("type") != "text" or block.get("text")]
    return _block(use, content or [text_block(_only_structured(result))], is_error=result.is_error)


def refused(use: ToolUse, why: str) -> Block:
    return _block(use, [text_block(why)], is_error=True)


def _block(use: ToolUse, content: list[Block], *, is_error: bool) -> Block:
    return {"type": "tool_result", "toolUseId": use.id, "content": content, "isError": is_error}


def _for_model(block: Mapping[str, Any]) -> Block:
    kind = block.get("type")
    if kind == "text":
        return text_block(str(block.get("text", "")))
    if kind == "image":
        return {"type": "image", "data": block["data"], "mimeType": block["mimeType"]}
    if kind == "resource_link":
        return text_block(f"[resource {block.get('uri')}: {block.get('name', '')}]")
    if kind == "resource":
        resource: Mapping[str, Any] = block.get("resource") or {}
        if isinstance(text := resource.get("text"), str):
            return text_block(text)
        return text_block(f"[resource {resource.get('uri')}, {resource.get('mimeType', 'no type')}, not shown]")
    return text_block(f"[{kind} block, not shown]")


def _only_structured(result: ToolResult) -> str:
    if result.structured is not None:
        return json.dumps(result.structured, ensure_ascii=False)
    return "(no output)"
