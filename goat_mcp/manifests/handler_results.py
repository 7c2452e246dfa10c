"""What a handler returned: JSON that every client can read, or an error that its caller can act on."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from goat_mcp.core.author_errors import handler_failed
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.json_values import escaped_surrogates, is_deeper

MAX_DEPTH = 128
"""Of lists and objects in one another. Clients stop reading a message at about 200, and the value lies inside one."""


def reported_failure(error: Mapping[str, Any], limit: int) -> ToolError:
    """From an error object of another process: `message`, and `suggestion`, `name`, `helpUrl` if it has them."""

    def text(key: str) -> str:
        value = error.get(key)
        return value if isinstance(value, str) else ""

    message = text("message") or text("name") or "the handler failed and said nothing"
    return handler_failed(message, text("suggestion"), name=text("name"), help_url=text("helpUrl"), limit=limit)


def call_timeout_error(tool: str, timeout_s: float) -> ToolError:
    return ToolError(
        ErrorCode.TIMEOUT,
        f"{tool} did not answer within {timeout_s:.3g} s and was ended",
        "Call it with less to do, or raise timeoutMs in its manifest (at most 45000).",
        facts={"timed_out": True},
    )


def read_json(data: bytes | bytearray) -> Any:
    """The value that a program printed. Raises `ValueError`, also if an object names a member twice."""
    try:
        return json.loads(data, object_pairs_hook=_object)
    except RecursionError:
        raise ValueError("its lists and objects lie too deep in one another") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        twin = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"an object names {twin[:80]!r} twice")
    return value


def write_json(value: Any) -> str:
    """The value as JSON text. Raises `ValueError` or `TypeError`, in words, for what some client could not read."""
    if is_deeper(value, MAX_DEPTH):
        raise ValueError(f"more than {MAX_DEPTH} lists and objects lie in one another")
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as problem:
            half = escaped_surrogates(text[problem.start])
            raise ValueError(f"a text of it holds {half}, half of a surrogate pair") from None
    return text
