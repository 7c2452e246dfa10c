"""What only a person may do at a terminal: a command that a model runs is told no, and to ask."""

from __future__ import annotations

import os


def is_run_by_a_model() -> bool:
    """Whether a tool has started this command."""
    from goat_mcp.processes.process_guard import MARKER_VARIABLE

    return bool(os.environ.get(MARKER_VARIABLE))


def refuse_commands_of_models(what: str) -> None:
    """Raises `ToolError(PERMISSION)` in a command that a tool has started."""
    from goat_mcp.core.errors import ErrorCode, ToolError

    if is_run_by_a_model():
        raise ToolError(ErrorCode.PERMISSION, f"a command that a model runs cannot {what}", "Ask the user to run this.")
