"""What is wrong with a call's arguments, as one error with a line for each problem."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from goat_mcp.core.errors import ErrorCode, ToolError, cut_middle

MAX_PROBLEMS = 12
MAX_VALUE_CHARS = 60

Problem = tuple[str, str]
"""Where, and what is the case and wanted there."""


def shown_value(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=True, default=repr)
    return f"{type(value).__name__} {cut_middle(text, MAX_VALUE_CHARS)}"


def input_error(problems: Sequence[Problem]) -> ToolError:
    lines = [f"{cut_middle(where, MAX_VALUE_CHARS)}: {what}" if where else what for where, what in problems]
    shown = lines[:MAX_PROBLEMS]
    if len(lines) > MAX_PROBLEMS:
        shown.append(f"... and {len(lines) - MAX_PROBLEMS} more problems")
    return ToolError(ErrorCode.INPUT, "\n".join(shown), "Correct these fields and call the tool again.")
