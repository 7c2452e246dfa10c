"""The tools of an MCP session of your own, in a box: called by the one pipeline, answered by the session's server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from goat_mcp import SideEffect, ToolBox, mcp_tools, open_tools
from goat_mcp.core.side_effect import Risk

pytestmark = pytest.mark.anyio

SCHEMA = {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]}


def weather_server() -> tuple[Server[Any], list[dict[str, Any]]]:
    """A server of two pages of tools, and the arguments of the calls that reached it."""
    calls: list[dict[str, Any]] = []
    pages = {
        None: types.ListToolsResult(
            tools=[types.Tool(name="current", description="Now.", input_schema=SCHEMA)], next_cursor="2"
        ),
        "2": types.ListToolsResult(tools=[types.Tool(name="delete_all", description="Gone.", input_schema=SCHEMA)]),
    }

    async def listed(ctx: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return pages[params.cursor if params is not None else None]

    async def called(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        arguments = params.arguments or {}
        calls.append(arguments)
        if arguments["town"] == "Atlantis":
            raise MCPError(-32050, "under water")
        text = types.TextContent(type="text", text=f"Rain in {arguments['town']}.")
        return types.CallToolResult(content=[text], is_error=arguments["town"] == "Nowhere")

    return Server("weather", on_list_tools=listed, on_call_tool=called), calls


async def test_all_tools_of_a_session_are_tools_of_the_box(tmp_path: Path) -> None:
    server, calls = weather_server()
    async with Client(server) as session:
        box = ToolBox(*await mcp_tools("my weather", session), state_directory=tmp_path / "state")
        names = [tool.spec.name for tool in box.tools()]
        good = await box.call(names[0], {"town": "Oslo"})
        failed = await box.call(names[0], {"town": "Nowhere"})
        refused = await box.call(names[0], {"town": "Atlantis"})
        unchecked = await box.call(names[0], {"town": 7})

    assert names == ["mcp__my_weather__current", "mcp__my_weather__delete_all"]
    assert (good.text, good.is_error) == ("Rain in Oslo.", False)
    assert (failed.text, failed.error_code) == ("Rain in Nowhere.", "E_UPSTREAM")
    assert refused.text.splitlines()[0] == "under water (JSON-RPC -32050)"
    assert unchecked.error_code == "E_INPUT"
    assert calls == [{"town": "Oslo"}, {"town": "Nowhere"}, {"town": "Atlantis"}]
    assert box.unregister("mcp__my_weather__") == 2


async def test_the_tools_of_a_client_session_are_too(tmp_path: Path) -> None:
    server, _ = weather_server()
    async with Client(server) as client:
        tools = await mcp_tools("weather", client.session)

    assert [tool.spec.name for tool in tools] == ["mcp__weather__current", "mcp__weather__delete_all"]


async def test_a_list_without_end_is_read_within_bounds() -> None:
    pages = 0

    async def listed(ctx: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        nonlocal pages
        pages += 1
        cursor = str(pages) if pages < 300 else None
        return types.ListToolsResult(tools=[types.Tool(name=f"t{pages}", input_schema=SCHEMA)], next_cursor=cursor)

    async with Client(Server[Any]("weather", on_list_tools=listed)) as session:
        tools = await mcp_tools("weather", session)

    assert (len(tools), pages) == (100, 100)


async def test_risk_is_judged_as_that_of_an_upstreams_tools() -> None:
    server, _ = weather_server()
    async with Client(server) as session:
        current, delete = await mcp_tools("weather", session)

    assert (current.spec.side_effect, current.spec.risk) == (SideEffect.NETWORK, Risk.HIGH)
    assert delete.spec.risk is Risk.CRITICAL


async def test_a_closed_session_is_an_error_that_says_so(tmp_path: Path) -> None:
    server, _ = weather_server()
    async with Client(server) as session:
        box = ToolBox(*await mcp_tools("weather", session), state_directory=tmp_path / "state")

    result = await box.call("mcp__weather__current", {"town": "Oslo"})

    assert (result.error_code, result.text.splitlines()[0]) == (
        "E_UPSTREAM_DOWN",
        "the session with weather is closed",
    )


async def test_they_stand_beside_all_others_under_the_rules_of_the_settings(tmp_path: Path) -> None:
    server, calls = weather_server()
    (tmp_path / "ws").mkdir()
    settings = {
        "workspace": [str(tmp_path / "ws")],
        "permissions": {"allow": ["mcp__weather__current"], "deny": ["mcp__weather__delete_all"]},
    }
    async with Client(server) as session:
        box = ToolBox(*await mcp_tools("weather", session))
        async with open_tools(settings, tools=box, state_directory=tmp_path / "state") as tools:
            names = [made["function"]["name"] for made in await tools.definitions()]
            good = await tools.call("mcp__weather__current", {"town": "Oslo"})
            denied = await tools.call("mcp__weather__delete_all", {"town": "Oslo"})

    assert {"Read", "mcp__weather__current"} <= set(names)
    assert (good.text, denied.error_code) == ("Rain in Oslo.", "E_PERMISSION")
    assert calls == [{"town": "Oslo"}]
