"""What every way to run a declared tool can do, and the way of tools that ship with us: in this process.

Users' handlers run in `handler_worker`, programs in `command_runner`, endpoints in `http_runner`.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import anyio

from goat_mcp.manifests.handler_api import Handler, HandlerContext, Host
from goat_mcp.manifests.handler_results import call_timeout_error
from goat_mcp.manifests.tool_document import Export

_GRACE_S = 3.0
"""Handlers of ours look at the time themselves, and have more to say of it; this is for one that hangs."""


class Runner(Protocol):
    """Runs the exports of one resource. What starts nothing that outlives a call has nothing to retire or close."""

    async def run(self, export: Export, input: Mapping[str, Any], ctx: HandlerContext, timeout_s: float) -> Any:
        """The handler's value, as JSON has it. Raises `ToolError`; nothing of the call runs on after it."""
        ...

    async def retire(self) -> None:
        """What runs goes on to its end; the next call starts again, with the files as they are then."""

    async def close(self) -> None:
        """End what runs."""


class InProcess(Runner):
    """One resource of ours: a module with `build_handlers(host)`."""

    def __init__(self, name: str, file: Path, host: Host) -> None:
        self._module_name = f"goat_manifests.{name.replace('-', '_')}"
        self._file = file
        self._host = host
        self._handlers: Mapping[str, Handler] | None = None

    async def run(self, export: Export, input: Mapping[str, Any], ctx: HandlerContext, timeout_s: float) -> Any:
        """As `Runner.run`. A handler's own `ToolError` goes on as it is; anything else it raises is a bug of ours."""
        if self._handlers is None:
            self._handlers = await anyio.to_thread.run_sync(self._load)
        with anyio.move_on_after(timeout_s + _GRACE_S):
            return await self._handlers[export.name](ctx, input)
        raise call_timeout_error(export.spec.name, timeout_s)

    def _load(self) -> Mapping[str, Handler]:
        spec = importlib.util.spec_from_file_location(self._module_name, self._file)
        assert spec is not None and spec.loader is not None  # a file ending in .py has both
        module: Any = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        handlers: Mapping[str, Handler] = module.build_handlers(self._host)
        return handlers
