"""A gateway with `run_script` on and a few tools that tests give it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.catalog.registry import AnyTool
from goat_mcp.core.context import ToolContext
from goat_mcp.core.result import ToolResult
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory

CALLER = ToolContext(call_id="script")


class Scripts:
    """Runs scripts as a client would."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway

    async def run(self, script: str, ctx: ToolContext = CALLER) -> ToolResult:
        return await self.gateway.call("run_script", {"script": script}, ctx)

    async def text(self, script: str, ctx: ToolContext = CALLER) -> str:
        result = await self.run(script, ctx)
        assert not result.is_error, result.text
        return result.text

    async def failure(self, script: str, ctx: ToolContext = CALLER) -> str:
        result = await self.run(script, ctx)
        assert result.is_error, result.text
        return result.text


@asynccontextmanager
async def scripts(folder: Path, *tools: AnyTool, **settings: Any) -> AsyncGenerator[Scripts]:
    gateway = Gateway(
        Settings.model_validate({"workspace": [folder], "catalog": {"toolsets": ["code"]}, **settings}),
        approval=Approval.HOST,
        state=StateDirectory(folder / "state"),
    )
    for tool in tools:
        gateway.registry.register(tool)
    async with gateway.running():
        yield Scripts(gateway)
