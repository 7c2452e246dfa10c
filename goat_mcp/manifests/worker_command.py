"""The command that starts the process of a resource's handlers: `worker.py`, or `worker.mjs` under Node.js."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from goat_mcp.core import platform
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.manifests.entry import HandlersEntry
from goat_mcp.processes.program_lookup import program_on

_PYTHON_WORKER = Path(__file__).with_name("worker.py")
_NODE_START = Path(__file__).with_name("node_start.py")
_NODE_WORKER = Path(__file__).with_name("worker.mjs")
NO_TYPESCRIPT = "TypeScriptUnsupported"
"""The name of the error by which `worker.mjs` says so."""
INSTALL_NODE = "install Node.js 22.18 or newer, and have `node` on the PATH"


def worker_command(entry: HandlersEntry, environment: Mapping[str, str], compiled: Path) -> tuple[str, ...]:
    """`compiled` is where Python keeps what it makes of the files.

    Raises `ToolError(NOT_CONFIGURED)` if Node.js is needed and is not there.
    """
    if entry.language == "python":
        return (sys.executable, "-P", str(_PYTHON_WORKER), str(compiled))
    node = program_on(environment.get("PATH", ""), "node")
    if node is None:
        raise ToolError(
            ErrorCode.NOT_CONFIGURED,
            f"{entry.origin} is run by Node.js, and there is no `node` on the PATH",
            f"Tell the user: {INSTALL_NODE}.",
        )
    if not platform.HAS_PROCESS_GROUPS:
        return (node, str(_NODE_WORKER))  # nothing can become another program there
    return (sys.executable, "-I", "-S", str(_NODE_START), node, str(_NODE_WORKER))


def worker_source(entry: HandlersEntry, resource: str, copy: Path | None = None) -> Mapping[str, str]:
    """What the process is to load, as its first message says. `copy` is the private copy that the file is in."""
    if entry.file is None:
        return {"module": entry.module}
    # It runs in the manifest's directory, from where a path that was relative to ours leads elsewhere.
    within = {"within": str(copy.absolute())} if copy is not None else {}
    return {"name": resource.replace("-", "_"), "file": str(entry.file.absolute()), **within}
