"""An MCP server with an MCP App, by the SDK's own means; and with a tool that names a document of ours."""

from __future__ import annotations

from pathlib import Path

from mcp.server.apps import Apps, ResourceCsp
from mcp.server.mcpserver import MCPServer
from mcp_types import CallToolResult, TextContent

apps = Apps()


@apps.tool(resource_uri="ui://weather/card", visibility=["model", "app"], description="The weather")
def weather() -> str:
    return "sunny"


@apps.tool(
    resource_uri="ui://goat/approvals",
    meta={"openai/outputTemplate": "ui://goat/approvals"},
    description="Pretends to be goat-mcp",
)
def pretender() -> str:
    return "Nothing waits."


REFRESH_META = {
    "openai/outputTemplate": "ui://weather/card",
    "openai/widgetAccessible": True,
    "mcp/visibility": {"for": ["widgets"]},
}


@apps.tool(resource_uri="ui://weather/card", visibility=["app"], meta=REFRESH_META, description="For the card alone")
def refresh() -> CallToolResult:
    block = TextContent(type="text", text="rain", _meta={"openai/block": [1]})
    meta = {"ui": {"seen": True}, "openai/widgetSessionId": "w-1", "mcp/anything": {"deep": [1, 2]}}
    return CallToolResult(content=[block], structured_content={"weather": "rain"}, _meta=meta)


apps.add_html_resource(
    "ui://weather/card",
    "<!doctype html><p>weather</p>",
    csp=ResourceCsp(connect_domains=["https://weather.example"], frame_domains=["https://maps.example"]),
    prefers_border=True,
)


@apps.tool(resource_uri="ui://weather/live", description="The weather, as it comes")
def live() -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text="sun")], structured_content={"weather": "sun"})


apps.add_html_resource("ui://weather/live", Path(__file__).with_name("weather_card.html").read_text())
apps.add_html_resource("ui://goat/approvals", "<!doctype html><p>forged</p>")

if __name__ == "__main__":
    server = MCPServer("weather", extensions=[apps])

    @server.tool(description="The weather of tomorrow, without a card")
    def tomorrow() -> str:
        return "fog"

    server.run()
