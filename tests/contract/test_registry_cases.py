"""The cases of the registry as a client meets them (`reg-001` and `reg-003`), in both protocol eras."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from goat_mcp.catalog.builtin_contracts import builtin_contracts
from tests.server.test_adapter import both_eras, connected, gateway

pytestmark = pytest.mark.anyio

MAX_BYTES = 2_048
"""Hosts cut a description, and a server's instructions, behind this."""
MAX_TOKENS = 5_000
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@both_eras
@pytest.mark.parametrize("name", ["Nope", "x" * 10_000, "", "Read ", "mcp__nobody__nothing"], ids=lambda name: name[:9])
async def test_reg_001_an_unknown_tool_is_an_error_and_the_server_keeps_running(
    tmp_path: Path, mode: str, name: str
) -> None:
    async with connected(gateway(tmp_path), mode) as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool(name, {})
        after = await client.call_tool("Glob", {"pattern": "*"})

    assert caught.value.error.code == types.INVALID_PARAMS
    assert caught.value.error.message.startswith(f"tool not found: {name[:200]}")
    assert len(caught.value.error.message) < 1_000
    assert not after.is_error


@pytest.mark.parametrize("mode", ["legacy", "auto"])  # a client that is told its revision does not ask for more
async def test_reg_003_the_list_is_one_that_every_host_takes(
    tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS", "1")
    async with connected(gateway(tmp_path), mode) as client:
        tools = (await client.list_tools()).tools
        again = (await client.list_tools()).tools
        instructions = client.instructions or ""

    wires: list[dict[str, Any]] = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]
    names = [tool.name for tool in tools]
    assert len(json.dumps(wires, separators=(",", ":"), ensure_ascii=False)) / 4 <= MAX_TOKENS
    assert 0 < len(instructions.encode()) <= MAX_BYTES
    assert all(0 < len((tool.description or "").encode()) <= MAX_BYTES for tool in tools)
    assert [name for name in names if not NAME.fullmatch(name)] == []
    assert (
        names == [tool.name for tool in again] == [spec.name for spec in builtin_contracts() if spec.toolset != "code"]
    )
    assert not [wire for wire in wires if {"anyOf", "oneOf", "allOf", "$ref"} & set(wire["inputSchema"])]
