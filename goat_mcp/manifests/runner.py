"""What every way to run a declared tool can do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from goat_mcp.manifests.handler_context import HandlerContext
from goat_mcp.manifests.tool_document import Export


class Runner(Protocol):
    """Runs the exports of one resource."""

    async def run(self, export: Export, input: Mapping[str, Any], ctx: HandlerContext, timeout_s: float) -> Any:
        """The handler's value, as JSON has it. Raises `ToolError`; nothing of the call runs on after it."""
        ...

    async def retire(self) -> None:
        """What runs goes on to its end; the next call begins anew, with the files as they are then."""
        ...

    async def close(self) -> None:
        """End what runs."""
        ...
