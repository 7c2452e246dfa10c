"""A server with `run_script`, as one of several processes with one state directory over HTTP, and a client of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from mcp import Client

from goat_mcp.calls.permissions.approval import DENY
from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.adapter import Adapter
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory
from tests.server.asking import accepts
from tests.tool_doubles import FakeTool

NOTHING: Mapping[str, Any] = {}


@asynccontextmanager
async def script_process(
    folder: Path, *served: FakeTool, settings: Mapping[str, Any] = NOTHING
) -> AsyncGenerator[tuple[Client, Gateway]]:
    gateway = Gateway(
        Settings.model_validate({"workspace": [folder], "catalog": {"toolsets": ["code"]}, **settings}),
        approval=Approval.ELICIT,
        state=StateDirectory(folder / "state"),
    )
    for tool in served:
        gateway.registry.register(tool)
    adapter = Adapter(gateway, "http")
    async with gateway.running(), anyio.create_task_group() as group:
        await group.start(adapter.run)
        async with Client(adapter.server, mode="2026-07-28", elicitation_callback=accepts(decision=DENY)) as client:
            yield client, gateway
        group.cancel_scope.cancel()
