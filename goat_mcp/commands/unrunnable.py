"""Commands that cannot or must not be run at all, whatever the rules say."""

from __future__ import annotations

import os
from collections.abc import Mapping

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.processes.environment import check_names
from goat_mcp.processes.script_words import kill_of_this_server


def refuse_unrunnable(command: str, variables: Mapping[str, str]) -> None:
    """`variables` are those that the call wants set. Raises `ToolError`."""
    if "\0" in command:
        raise ToolError(ErrorCode.INPUT, "command: holds a NUL character", "Remove it; write $'\\0' or printf '\\0'.")
    try:
        command.encode("utf-8")
    except UnicodeEncodeError:
        raise ToolError(ErrorCode.INPUT, "command: holds a lone surrogate, which is no text", "Remove it.") from None
    check_names(variables)
    if (words := kill_of_this_server(command)) is not None:
        raise ToolError(
            ErrorCode.BLOCKED,
            f"`{words[:200]}` would end goat-mcp itself (process {os.getpid()})",
            "Name a pattern that matches only the process you mean, or use its number.",
        )
