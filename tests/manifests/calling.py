"""Calls of the tools that ship with us, the whole way: a gateway with their toolsets, and its pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.core.context import ToolContext
from goat_mcp.core.elicitation import Ask, nobody_to_ask
from goat_mcp.core.result import ToolResult
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory


@dataclass
class Caller:
    """One client's session with a gateway over `folder/project`."""

    folder: Path
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    ask: Ask = nobody_to_ask
    session: str = "one"
    principal: str = "local"
    calls: int = 0

    def __post_init__(self) -> None:
        self.project = self.folder / "project"
        self.project.mkdir(exist_ok=True)
        given = {"workspace": [self.project], "catalog": {"toolsets": ["core", "state", "tasks", "goa", "base"]}}
        self.gateway = Gateway(
            Settings.model_validate({**given, **self.settings}),
            approval=Approval.HOST,
            state=StateDirectory(self.folder / "state"),
        )

    async def call(self, tool: str, **arguments: Any) -> ToolResult:
        self.calls += 1
        ctx = ToolContext(call_id=f"c{self.calls}", session_key=self.session, principal=self.principal, ask=self.ask)
        return await self.gateway.call(tool, arguments, ctx)

    async def value(self, tool: str, **arguments: Any) -> Any:
        """What a call that works gives back."""
        result = await self.call(tool, **arguments)
        assert not result.is_error, result.text
        assert result.structured is not None
        return result.structured

    async def problem(self, tool: str, **arguments: Any) -> str:
        """What a call that fails says: message, suggestion, code."""
        result = await self.call(tool, **arguments)
        assert result.is_error, result.text
        return result.text
