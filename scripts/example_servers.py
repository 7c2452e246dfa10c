"""The MCP servers that examples speak of: `docs` with one page, `shop` with one kind of resource."""

from __future__ import annotations

import asyncio
import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer(sys.argv[1], version="1.0.0", log_level="ERROR")

if sys.argv[1] == "docs":

    @server.resource("docs://intro", name="Introduction", mime_type="text/markdown")
    def intro() -> str:
        return "# Welcome\n\nStart with the tutorial."

else:

    @server.resource("orders://{year}/{number}", name="Orders", mime_type="text/plain")
    def order(year: str, number: str) -> str:
        return f"Order {number} of {year}: two kilos of apples"


asyncio.run(server.run_stdio_async())
