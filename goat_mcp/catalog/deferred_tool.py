"""A tool whose contract is known before its code is loaded: listing tools costs nothing of what calling one does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from goat_mcp.catalog.registry import AnyTool
from goat_mcp.core.context import ToolContext
from goat_mcp.core.result import ToolResult
from goat_mcp.core.spec import ToolSpec
from goat_mcp.core.tool import Access


class DeferredTool:
    """Stands in the registry for the tool of its name, which `load` returns."""

    def __init__(self, spec: ToolSpec, load: Callable[[str], AnyTool]) -> None:
        self.spec = spec
        self._load = load

    def validate(self, arguments: Mapping[str, Any]) -> Any:
        return self._load(self.spec.name).validate(arguments)

    def access(self, input: Any) -> Access:
        return self._load(self.spec.name).access(input)

    async def execute(self, input: Any, ctx: ToolContext) -> ToolResult:
        return await self._load(self.spec.name).execute(input, ctx)
