"""How long the names of tools may be (NAM-4): the host's limit, for the process or for a profile, from end to end."""

from __future__ import annotations

import json
from pathlib import Path

import mcp_types as types
import pytest

from goat_mcp.core.names import exposed_name
from tests.e2e.goat import Launch, connected, listed_with
from tests.upstreams.fleet import server

pytestmark = [pytest.mark.anyio, pytest.mark.e2e, pytest.mark.matrix]
NATIVE = "a_tool_with_a_name_that_is_longer_than_fifty_characters_are"
FULL = f"mcp__b__{NATIVE}"
SETTINGS = "profiles:\n  short: {name_cap: 32}\n"

CAPS = {
    "the default": ((), exposed_name("mcp__b__", NATIVE, server="b", cap=50)),
    "a narrow host": (("--set", "catalog.name_cap=32"), exposed_name("mcp__b__", NATIVE, server="b", cap=32)),
    "a wide host": (("--set", "catalog.name_cap=128"), FULL),
    "a profile": (("--profile", "short"), exposed_name("mcp__b__", NATIVE, server="b", cap=32)),
}


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
@pytest.mark.parametrize(("options", "name"), CAPS.values(), ids=CAPS.keys())
async def test_a_name_is_as_long_as_the_host_takes_and_its_tool_is_called_by_it(
    tmp_path: Path, options: tuple[str, ...], name: str, mode: str
) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "servers.json").write_text(json.dumps({"mcpServers": {"b": server("steady.py", tmp_path, NATIVE)}}))
    (tmp_path / "goat-mcp.yaml").write_text(SETTINGS)
    files = ("--config", str(tmp_path / "goat-mcp.yaml"), "--upstreams", str(tmp_path / "servers.json"))
    launch = Launch(tmp_path, tmp_path / "ws", (*files, "--mode", "bypassPermissions", *options))

    async with connected(launch, mode) as client:
        tools = await listed_with(client, "mcp__b__pid")
        listed = [tool.name for tool in tools if tool.name.startswith("mcp__b__a_tool")]
        result = await client.call_tool(name, {})

    assert listed == [name]
    assert isinstance(result, types.CallToolResult)
    assert result.content == [types.TextContent(type="text", text=NATIVE)]
