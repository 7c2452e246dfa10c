"""What an upstream's process is confined by, as its supervisor sees it. How a sandbox is made lies elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:  # loaded when a process is started
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from goat_mcp.commands.sandbox.options import SandboxOptions
    from goat_mcp.processes.launch import Confined

Confine: TypeAlias = "Callable[[SandboxOptions, Path], Awaitable[Confined | None]]"
"""Finds the sandbox for an entry that wants one, started in this directory; None: it runs without after all. Raises
`ToolError`."""
