"""Makes an answer one that its client can read: its protocol revision knows it, and every JSON reader takes it.

One unknown member costs itself only (REL-4); without this the SDK refuses the whole result. Results that are in order
pass untouched.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, cast

from mcp_types import methods
from pydantic_core import PydanticSerializationError, from_json, to_json

from goat_mcp.core.json_values import escaped_surrogates, is_deeper
from goat_mcp.core.result import text_block

MAX_COMPLETIONS = 100
"""Of one answer; the protocol allows no more."""
_PLAIN = {"content", "isError", "resultType"}
_PLAIN_AND_OBJECT = _PLAIN | {"structuredContent"}
_PLAIN_BLOCK = {"type", "text"}
_FRESH = {"ttlMs": 0, "cacheScope": "private"}
"""Of a read, nobody but the upstream could say how long; it is a matter between it and us."""


def downgraded_result(answer: dict[str, Any], version: str) -> dict[str, Any]:
    """The answer to `tools/call`; where `version` does not know it whole, unreadable blocks as their JSON and other
    members left out. Structured content that would be all that is left out of an answer without blocks is a text."""

    if is_plain_text(answer) or is_known_everywhere(answer):
        return answer

    def as_text(block: Mapping[str, Any]) -> dict[str, Any]:
        return text_block(json.dumps(block))

    known = _downgraded(answer, version, "tools/call", "content", as_text, {"isError": answer["isError"]})
    if "structuredContent" in answer and "structuredContent" not in known and not known["content"]:
        # It was all there is: most upstreams say the same in a text, this one does not.
        return {**known, "content": [text_block(json.dumps(answer["structuredContent"], ensure_ascii=False))]}
    return known


def is_plain_text(answer: dict[str, Any]) -> bool:
    """Whether the answer is what most are, texts and nothing else: every revision knows that. ASCII, for surrogates."""
    if answer.keys() != _PLAIN or answer["resultType"] != "complete":
        return False
    for block in answer["content"]:
        if block.keys() != _PLAIN_BLOCK or block["type"] != "text":
            return False
        if not isinstance(text := block["text"], str) or not text.isascii():
            return False
    return True


def is_known_everywhere(answer: dict[str, Any]) -> bool:
    """Whether a readable answer is texts and an object beside them: no revision would leave any of it out, so that
    none need be asked, which costs more than making the answer."""
    return (
        answer.keys() == _PLAIN_AND_OBJECT
        and answer["resultType"] == "complete"
        and isinstance(answer["structuredContent"], dict)
        and all(
            block.keys() == _PLAIN_BLOCK and block["type"] == "text" and isinstance(block["text"], str)
            for block in answer["content"]
        )
    )


def downgraded_messages(answer: dict[str, Any], version: str) -> dict[str, Any]:
    """The answer to `prompts/get`; a message that cannot be read is its content's JSON, said by the same side."""

    def as_text(message: Mapping[str, Any]) -> dict[str, Any]:
        role = message.get("role")
        known_role = role if role in ("user", "assistant") else "user"
        return {"role": known_role, "content": text_block(json.dumps(message.get("content")))}

    return _downgraded(answer, version, "prompts/get", "messages", as_text)


def downgraded_contents(answer: dict[str, Any], version: str, uri: str) -> dict[str, Any]:
    """The answer to `resources/read`; a content that cannot be read is its JSON."""

    def as_text(content: Mapping[str, Any]) -> dict[str, Any]:
        own = content.get("uri")
        return {
            "uri": own if isinstance(own, str) else uri,
            "mimeType": "application/json",
            "text": json.dumps(content),
        }

    return _downgraded({**answer, **_FRESH}, version, "resources/read", "contents", as_text, _FRESH)


def downgraded_completion(answer: dict[str, Any], version: str) -> dict[str, Any]:
    """The answer to `completion/complete`: values that are texts, as many as there may be."""
    method = "completion/complete"
    given = answer.get("completion")
    completion = dict(cast("dict[str, Any]", given)) if isinstance(given, dict) else {}
    values = completion.get("values")
    texts = [value for value in cast("list[Any]", values) if isinstance(value, str)] if isinstance(values, list) else []
    if len(texts) > MAX_COMPLETIONS:
        completion["hasMore"] = True
    known: dict[str, Any] = {"completion": {"values": texts[:MAX_COMPLETIONS]}, "resultType": "complete"}
    for name, value in completion.items():
        with_it = {**known, "completion": {**known["completion"], name: value}}
        if name != "values" and _is_known(with_it, version, method, "completion"):
            known = with_it
    return _with_others(known, answer, version, method, "completion")


def _downgraded(
    answer: dict[str, Any],
    version: str,
    method: str,
    member: str,
    substitute: Callable[[Mapping[str, Any]], dict[str, Any]],
    always: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    complete = answer if answer.get("resultType") == "complete" else {**answer, "resultType": "complete"}
    if _is_known(complete, version, method, member):
        return complete
    kept = {**(always or {}), "resultType": "complete"}
    listed = [
        one if _is_known({**kept, member: [one]}, version, method, member) else substitute(one)
        for one in answer[member]
    ]
    return _with_others({member: listed, **kept}, answer, version, method, member)


def _with_others(
    known: dict[str, Any], answer: Mapping[str, Any], version: str, method: str, member: str
) -> dict[str, Any]:
    """Whatever else of the answer the revision knows."""
    for name, value in answer.items():
        if name not in known and _is_known({**known, name: value}, version, method, member):
            known[name] = value
    return known


def _is_known(answer: Mapping[str, Any], version: str, method: str, member: str) -> bool:
    try:
        sent = methods.serialize_server_result(method, version, answer)
    except ValueError:  # most are `ValidationError`; what lies too deep is not
        return False
    # A result that fits no form of an answer can be taken for one of another kind, without this member.
    return member in sent


MAX_DEPTH = 190
"""Of one member. Widely used readers stop at 200, and a member lies inside its answer, that inside a message."""
_UNBOUNDED = 1 << 20
"""Of what has been looked at."""


def sanitized_result(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer to `tools/call`; the same object where it is in order, as nearly all are.

    Halves of surrogate pairs are shown as their escapes, numbers that JSON lacks are null, and what lies too deep is
    left out, which is said.
    """
    if is_plain_text(answer) or _is_read(answer):
        return answer
    left_out = [name for name, value in answer.items() if name != "content" and is_deeper(value, MAX_DEPTH)]
    kept = {name: value for name, value in answer.items() if name not in left_out}
    blocks = [
        _too_deep("a block") if is_deeper(block, MAX_DEPTH) else block for block in cast("list[Any]", answer["content"])
    ]
    return sound({**kept, "content": blocks + [_too_deep(name) for name in left_out]}, _UNBOUNDED)


def sanitized_answer(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer to a request about resources or prompts, in the same way; the same object where it is in order."""
    return answer if _is_read(answer) else sound(answer)


def _is_read(answer: dict[str, Any]) -> bool:
    try:
        from_json(to_json([answer]), allow_inf_nan=False)
    except (PydanticSerializationError, ValueError):
        return False
    return True


def _too_deep(what: str) -> dict[str, Any]:
    said = f"[{what} is left out: more than {MAX_DEPTH} lists and objects lie in one another, more than clients read]"
    return text_block(said)


def sound(value: Any, room: int = MAX_DEPTH) -> Any:
    """A JSON value that can be written and read. `room` is how many lists and objects may lie in one another; what
    lies deeper is null."""
    if isinstance(value, str):
        return escaped_surrogates(value)
    if isinstance(value, dict | list | tuple) and not room:
        return None
    if isinstance(value, dict):
        return {sound(name, 0): sound(inner, room - 1) for name, inner in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [sound(inner, room - 1) for inner in cast("list[Any]", value)]
    return None if isinstance(value, float) and not math.isfinite(value) else value
