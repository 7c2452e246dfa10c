"""Scalars and JSON as hosts and models send them: `"5"` for 5, `"true"` for true, a list as text; and input errors.

The caller knows which fields are data, which is never converted. Contract: tools.md, "Arguments".
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any, Literal, cast

from goat_mcp.core.errors import ErrorCode, ToolError, cut_middle

Kind = Literal["text", "choice", "integer", "number", "boolean", "list", "object", "any"]
_INTEGER = re.compile(r"\s*[+-]?\d+\s*\Z")
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*\Z")
_TRUTH = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False}


def coerced(kind: Kind, value: Any) -> Any:
    """The value a field of this kind was meant to have; as it came if that is not clear."""
    if kind in ("text", "any"):
        return value
    if isinstance(value, str):
        return _from_text(kind, value)
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    if kind == "boolean" and type(value) is int and value in (0, 1):
        return bool(value)
    if kind == "list" and not isinstance(value, list):
        return [value]
    return cast("Any", value)


def has_lone_surrogate(value: Any) -> bool:
    """Whether a text somewhere in a JSON value cannot be written as UTF-8 (R-SCHEMA-1)."""
    if isinstance(value, str):
        try:
            return not value.isascii() and not value.encode()
        except UnicodeEncodeError:
            return True
    if isinstance(value, dict):
        pairs = cast("dict[Any, Any]", value).items()
        return any(has_lone_surrogate(key) or has_lone_surrogate(inner) for key, inner in pairs)
    return isinstance(value, list) and any(map(has_lone_surrogate, cast("list[Any]", value)))


def _from_text(kind: str, text: str) -> Any:
    if kind == "integer" and _INTEGER.match(text):
        try:
            return int(text)
        except ValueError:  # thousands of digits
            return text
    if kind == "number" and _NUMBER.match(text):
        # Infinity is no number that JSON has.
        return number if math.isfinite(number := float(text)) else text
    if kind == "boolean":
        return _TRUTH.get(text.strip().lower(), text)
    if kind in ("list", "object"):
        try:
            parsed: Any = json.loads(text)
        except ValueError:
            return [text] if kind == "list" else text
        if kind == "list" and not isinstance(parsed, list):
            return [parsed]
        return cast("Any", parsed)
    return text


MAX_PROBLEMS = 12
MAX_VALUE_CHARS = 60

Problem = tuple[str, str]
"""Where, and what is the case and wanted there."""


def shown_value(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=True, default=repr)
    return f"{type(value).__name__} {cut_middle(text, MAX_VALUE_CHARS)}"


def input_error(problems: Sequence[Problem], schema: str = "") -> ToolError:
    """`schema`: what the fields take, if the caller may not know it."""
    lines = [f"{cut_middle(where, MAX_VALUE_CHARS)}: {what}" if where else what for where, what in problems]
    shown = lines[:MAX_PROBLEMS]
    if len(lines) > MAX_PROBLEMS:
        shown.append(f"... and {len(lines) - MAX_PROBLEMS} more problems")
    takes = f" Their schema: {schema}" if schema else ""
    return ToolError(ErrorCode.INPUT, "\n".join(shown), f"Correct these fields and call the tool again.{takes}")
