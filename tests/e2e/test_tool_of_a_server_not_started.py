"""A call of a tool that nobody has listed yet: its server is started and asked before the call is answered (LIF-1)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mcp_types import CallToolResult, TextContent

from tests.conformance.fixture.one_era import STATELESS
from tests.e2e.goat import Launch, connected
from tests.passthrough.gateways import upstream

MODES = ("legacy", "2026-07-28")
NUMBERS = {"a": 2, "b": 3}


def launch(folder: Path, *options: str) -> Launch:
    server = upstream(STATELESS)
    entry = {"command": server.command, "args": server.args, "env": server.env}
    gone = {"command": "/no/such/program"}
    file = folder / "upstreams.json"
    file.write_text(json.dumps({"mcpServers": {"everything": entry, "gone": gone}}))
    workspace = folder / "workspace"
    workspace.mkdir()
    return Launch(folder, workspace, ("--upstreams", str(file), "--mode", "bypassPermissions", *options))


def text(result: CallToolResult) -> str:
    return "".join(block.text for block in result.content if isinstance(block, TextContent))


@pytest.mark.anyio
@pytest.mark.parametrize("mode", MODES)
async def test_a_call_starts_the_server_that_has_the_tool(tmp_path: Path, mode: str) -> None:
    async with connected(launch(tmp_path), mode) as client:
        result = await client.session.call_tool("mcp__everything__add", NUMBERS)

    assert text(result) == "5"


@pytest.mark.anyio
@pytest.mark.parametrize("mode", MODES)
async def test_so_does_a_call_by_call_tool(tmp_path: Path, mode: str) -> None:
    async with connected(launch(tmp_path, "--set", "catalog.mode=search"), mode) as client:
        wanted = {"name": "mcp__everything__add", "arguments": NUMBERS}
        result = await client.session.call_tool("call_tool", wanted)

    assert text(result) == "5"


@pytest.mark.anyio
@pytest.mark.parametrize("mode", MODES)
async def test_a_server_that_cannot_start_is_named_as_the_reason(tmp_path: Path, mode: str) -> None:
    async with connected(launch(tmp_path), mode) as client:
        result = await client.session.call_tool("mcp__gone__add", NUMBERS)

    assert result.is_error
    assert "upstream gone" in text(result)
