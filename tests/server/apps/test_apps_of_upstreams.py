"""An upstream's MCP App passes through us as it is (ERA-7); ours cannot be taken."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from goat_mcp.server.caller_identity import APP_MIME_TYPE
from tests.server.apps.test_apps import APPS, both_eras, host

pytestmark = pytest.mark.anyio
START_S = 60
UPSTREAM = Path(__file__).with_name("upstream_with_app.py")


def settings(folder: Path) -> dict[str, Any]:
    file = folder / "upstreams.json"
    file.write_text(json.dumps({"mcpServers": {"weather": {"command": sys.executable, "args": [str(UPSTREAM)]}}}))
    return {"upstreams": [file]}


async def upstream_tools(client: Client) -> dict[str, Any]:
    """Those of the upstream, once it is there: on a busy machine the first list does not wait so long."""
    with anyio.fail_after(START_S):
        while True:
            listed = (await client.list_tools(cache_mode="bypass")).tools
            if found := {tool.name: tool.meta for tool in listed if tool.name.startswith("mcp__")}:
                return found
            await anyio.sleep(0.1)


@both_eras
async def test_ERA_7_an_upstreams_app_passes_with_its_policy(tmp_path: Path, mode: str) -> None:
    async with host(tmp_path, mode, **settings(tmp_path)) as client:
        tools = await upstream_tools(client)
        (content,) = (await client.read_resource("ui://weather/card")).contents

    shown = tools["mcp__weather__weather"]
    assert shown == {"ui": {"resourceUri": "ui://weather/card", "visibility": ["model", "app"]}}
    assert content.mime_type == APP_MIME_TYPE
    assert getattr(content, "text", "") == "<!doctype html><p>weather</p>"
    assert content.meta == {"ui": {"csp": {"connectDomains": ["https://weather.example"]}, "prefersBorder": True}}


@both_eras
async def test_an_upstream_can_neither_replace_a_document_of_ours_nor_be_shown_in_one(
    tmp_path: Path, mode: str
) -> None:
    async with host(tmp_path, mode, **settings(tmp_path)) as client:
        tools = await upstream_tools(client)
        listed = [str(one.uri) for one in (await client.list_resources()).resources]
        (content,) = (await client.read_resource(APPS["show_approvals"])).contents

    assert "mcp__weather__pretender" in tools and not tools["mcp__weather__pretender"]
    assert listed.count(APPS["show_approvals"]) == 1
    assert "forged" not in getattr(content, "text", "")
