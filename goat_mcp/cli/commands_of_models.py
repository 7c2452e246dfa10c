"""What only a person may do at a terminal: a command that a model runs is told no, and to ask."""

from __future__ import annotations

import os


def refuse_commands_of_models(what: str) -> None:
    """Raises `ToolError(PERMISSION)` in a command that a tool has started."""
    from goat_mcp.core.errors import ErrorCode, ToolError
    from goat_mcp.subprocesses.process_guard import MARKER_VARIABLE

    if os.environ.get(MARKER_VARIABLE):
        raise ToolError(ErrorCode.PERMISSION, f"a command that a model runs cannot {what}", "Ask the user to run this.")
