"""OpenAI's function calling: tool definitions, `tool_calls` of a reply, `role: tool` messages. `embed` runs the calls.

Source: Goat Spec 04, sections 5 and 6.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from pydantic import BaseModel

from goat_mcp.core.errors import ErrorCode, ToolError, cut_middle
from goat_mcp.core.result import Block, ToolResult
from goat_mcp.core.spec import ToolSpec

ERROR_PREFIX = "Error: "
"""What marks a failed call: a `role: tool` message has no other place for it. Source: Spec 04, section 6."""
NOTHING = "(no output)"
"""Some providers refuse a message without text."""
_MAX_SHOWN_CHARS = 60
_COMBINATORS = frozenset({"oneOf", "anyOf", "allOf", "enum", "not", "const"})
"""What OpenAI refuses at the top of a function's parameters."""


def definition(spec: ToolSpec) -> dict[str, Any]:
    """One member of a request's `tools`."""
    return function_definition(spec.name, spec.description, spec.input_schema)


def function_definition(name: str, description: str, input_schema: Mapping[str, Any]) -> dict[str, Any]:
    """The same for who knows of a tool no more than this."""
    function = {"name": name, "description": description, "parameters": _parameters(input_schema)}
    return {"type": "function", "function": function}


def definitions(specs: Iterable[ToolSpec]) -> list[dict[str, Any]]:
    """The `tools` of a request, in the order given."""
    return [definition(spec) for spec in specs]


def _parameters(schema: Mapping[str, Any]) -> dict[str, Any]:
    """An upstream's schema may be one that OpenAI refuses. What is left out here is still held when the tool is called.

    Our own come out as they are.
    """
    kept = {key: value for key, value in schema.items() if key not in _COMBINATORS}
    return {**kept, "type": "object", "properties": kept.get("properties", {})}


@dataclass(frozen=True)
class OpenAiCall:
    """One member of a reply's `tool_calls`. With a `problem` it cannot be run, and that is its answer."""

    id: str
    name: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    problem: ToolError | None = None


def read_tool_calls(tool_calls: Sequence[Any] | None) -> list[OpenAiCall]:
    """Read a reply's `tool_calls`: dictionaries, or the models of the `openai` and `litellm` packages. None is none.

    What is wrong with one call is its own `problem`. Raises `ToolError(INPUT)` if nobody could be answered: not a
    list, a member that is no object or has no id.
    """
    if tool_calls is None:
        return []
    if isinstance(tool_calls, str | bytes | Mapping) or not isinstance(cast("Any", tool_calls), Sequence):
        raise ToolError(ErrorCode.INPUT, f"tool_calls wants a list; got {type(tool_calls).__name__}")
    calls: list[OpenAiCall] = []
    for index, given in enumerate(tool_calls):
        call = _read(index, given)
        if any(call.id == earlier.id for earlier in calls):
            # Run once: a call that came twice by mistake may be one that must not be done twice.
            call = OpenAiCall(call.id, problem=_problem(f"the id {_shown(call.id)} is that of an earlier call"))
        calls.append(call)
    return calls


def assistant_message(tool_calls: Sequence[Any] | None) -> dict[str, Any]:
    """A model's message that holds these calls, which have been read, and nothing else."""
    calls = [_members(given) for given in tool_calls or ()]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def _read(index: int, given: Any) -> OpenAiCall:
    call = _members(given)
    id = None if call is None else call.get("id")
    if call is None or not isinstance(id, str) or not id:
        what = f"has no id to answer to: {_shown(call)}" if call is not None else f"is no object: {_shown(given)}"
        raise ToolError(ErrorCode.INPUT, f"tool_calls[{index}] {what}", "Pass the tool_calls of the model's message.")
    function = _members(call.get("function"))
    if call.get("type", "function") != "function" or function is None:
        return OpenAiCall(id, problem=_problem('a call wants "type": "function" and a "function" object'))
    name = function.get("name")
    if not isinstance(name, str) or not name:
        return OpenAiCall(id, problem=_problem(f"function.name wants a tool's name; got {_shown(name)}"))
    try:
        return OpenAiCall(id, name, _arguments(function.get("arguments")))
    except ValueError as wrong:
        return OpenAiCall(id, name, problem=_problem(f"function.arguments {wrong}"))


def _members(given: Any) -> Mapping[str, Any] | None:
    if isinstance(given, BaseModel):
        return given.model_dump()
    return cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else None


def _arguments(text: Any) -> dict[str, Any]:
    """The arguments in their JSON text; empty text is what some models send for none. Raises `ValueError`."""
    if not isinstance(text, str):
        raise ValueError(f"wants JSON text; got {type(text).__name__}")
    if not text.strip():
        return {}
    try:
        parsed: Any = json.loads(text, object_pairs_hook=_no_key_twice, parse_constant=_no_constant)
    except json.JSONDecodeError as broken:
        place = f"line {broken.lineno}, column {broken.colno}"
        raise ValueError(f"is not JSON: {broken.msg} at {place}: {_shown(text)}") from None
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    if not isinstance(parsed, dict):
        raise ValueError(f"wants a JSON object; got {_shown(text)}")
    return cast("dict[str, Any]", parsed)


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        twice = next(key for index, (key, _) in enumerate(pairs) if key in dict(pairs[:index]))
        raise ValueError(f"has {_shown(twice)} twice")
    return members


def _no_constant(text: str) -> Any:
    raise ValueError(f"is not JSON: {text} is no number")


def _problem(message: str) -> ToolError:
    return ToolError(ErrorCode.INPUT, message, "Correct it and call the tool again.")


def _shown(value: Any) -> str:
    return cut_middle(json.dumps(value, ensure_ascii=True, default=repr), _MAX_SHOWN_CHARS)


def tool_message(tool_call_id: str, result: ToolResult) -> dict[str, Any]:
    """The `role: tool` message that answers a call. Text only: what else a result holds is noted."""
    texts = [text for block in result.content if (text := _as_text(block))]
    if not texts and result.structured is not None:
        texts = [json.dumps(result.structured, ensure_ascii=False)]
    # Half a character (an upstream can send one in JSON) would not go into any request.
    text = "\n".join(texts).encode("utf-16", "surrogatepass").decode("utf-16", "replace") or NOTHING
    if result.is_error and not text.startswith(ERROR_PREFIX):
        text = ERROR_PREFIX + text
    return {"role": "tool", "tool_call_id": tool_call_id, "content": text}


def _as_text(block: Block) -> str:
    kind = block.get("type")
    if kind == "text":
        return str(block.get("text", ""))
    if kind == "resource_link":
        return f"[resource {block.get('uri')}: {block.get('title') or block.get('name') or 'no name'}]"
    held: Any = block.get("resource") if kind == "resource" else block
    return _noted(str(kind), cast("Mapping[str, Any]", held) if isinstance(held, Mapping) else {})


def _noted(kind: str, held: Mapping[str, Any]) -> str:
    """The text of an embedded resource, or what there is to know of data."""
    if isinstance(held.get("text"), str):
        return held["text"]
    # Four characters of base64 are three bytes.
    size = len(str(held.get("data") or held.get("blob") or "")) * 3 // 4
    where = f" {held['uri']}" if held.get("uri") else ""
    return f"[{kind}{where}: {held.get('mimeType', 'unknown type')}, {size:,} bytes; a tool message holds text only]"
