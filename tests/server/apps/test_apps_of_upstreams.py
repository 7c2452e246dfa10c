"""An upstream's MCP App passes through us as it is (ERA-7); ours cannot be taken."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from goat_mcp.server.caller_identity import APP_MIME_TYPE
from tests.server.apps.test_apps import APPS, both_eras, host
from tests.server.test_adapter import connected, gateway

pytestmark = pytest.mark.anyio
START_S = 60
CSP = {"connectDomains": ["https://weather.example"], "frameDomains": ["https://maps.example"]}
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
    assert content.meta == {"ui": {"csp": CSP, "prefersBorder": True}}


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


@both_eras
async def test_ERA_7_keys_of_any_host_pass_in_tools_resources_and_results(tmp_path: Path, mode: str) -> None:
    async with host(tmp_path, mode, **settings(tmp_path)) as client:
        tools = await upstream_tools(client)
        listed = {str(one.uri): one.meta for one in (await client.list_resources()).resources}
        answer = await client.call_tool("mcp__weather__refresh", {})

    assert tools["mcp__weather__refresh"] == {
        "ui": {"resourceUri": "ui://weather/card", "visibility": ["app"]},
        "openai/outputTemplate": "ui://weather/card",
        "openai/widgetAccessible": True,
        "mcp/visibility": {"for": ["widgets"]},
    }
    assert listed["ui://weather/card"] == {"ui": {"csp": CSP, "prefersBorder": True}}
    meta = {key: value for key, value in (answer.meta or {}).items() if not key.startswith("io.modelcontextprotocol/")}
    assert meta == {"ui": {"seen": True}, "openai/widgetSessionId": "w-1", "mcp/anything": {"deep": [1, 2]}}
    assert answer.structured_content == {"weather": "rain"}
    assert answer.content[0].meta == {"openai/block": [1]}


@both_eras
async def test_ERA_7_tools_with_a_document_are_listed_and_called_by_hosts_where_all_others_are_deferred(
    tmp_path: Path, mode: str
) -> None:
    async with host(tmp_path, mode, catalog={"mode": "search"}, **settings(tmp_path)) as client:
        tools = await upstream_tools(client)
        found = await client.call_tool("search_tools", {"query": "weather"})
        by_the_card = await client.call_tool("mcp__weather__refresh", {})
        by_a_model = await client.call_tool("call_tool", {"name": "mcp__weather__refresh", "arguments": {}})
        deferred = await client.call_tool("call_tool", {"name": "mcp__weather__tomorrow", "arguments": {}})

    assert set(tools) == {"mcp__weather__weather", "mcp__weather__refresh", "mcp__weather__live"}
    assert "mcp__weather__tomorrow" in str(found.content) and "refresh" not in str(found.content)
    assert not by_the_card.is_error and not deferred.is_error
    assert by_a_model.is_error and "not for models" in str(by_a_model.content)


async def test_our_own_models_do_not_see_what_is_for_a_document_alone(tmp_path: Path) -> None:
    served = gateway(tmp_path, **settings(tmp_path))
    async with connected(served, "2026-07-28") as client:
        await upstream_tools(client)
        for_models = {tool.spec.name for tool in served.catalog.for_models()}
        listed = {tool.spec.name for tool in served.catalog.listed()}

    assert listed - for_models == {"mcp__weather__refresh"}


async def test_an_apps_own_name_of_a_tool_means_nothing_where_two_servers_have_it_or_no_app_is_shown(
    tmp_path: Path,
) -> None:
    file = tmp_path / "upstreams.json"
    entry = {"command": sys.executable, "args": [str(UPSTREAM)]}
    file.write_text(json.dumps({"mcpServers": {"one": entry, "two": entry}}))
    async with host(tmp_path, upstreams=[file]) as client:
        with anyio.fail_after(START_S):
            while len({name.split("__")[1] for name in await upstream_tools(client)}) < 2:  # noqa: ASYNC110  # processes
                await anyio.sleep(0.1)
        with pytest.raises(MCPError):
            await client.call_tool("refresh", {})
    async with connected(gateway(tmp_path, **settings(tmp_path)), "2026-07-28") as client:
        await upstream_tools(client)
        with pytest.raises(MCPError):
            await client.call_tool("refresh", {})
