"""An answer that every client's JSON reader takes: one that cannot be read is one that its caller waits for in vain.

What a protocol revision knows of an answer is in `deliverable`.
"""

from __future__ import annotations

import math
from typing import Any, cast

from pydantic_core import PydanticSerializationError, from_json, to_json

from goat_mcp.core.json_values import escaped_surrogates, is_deeper
from goat_mcp.core.result import text_block
from goat_mcp.server.downgrade_result import is_plain_text

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
