"""FastMCP's proxy, as its documentation sets it up. Runs in its own environment (`make bench-peers` makes it).

Arguments: `stdio` or the port to serve HTTP on, then what to relay: a URL, or a command and its arguments.
"""

from __future__ import annotations

import sys

from fastmcp.server import create_proxy  # pyright: ignore  # installed in bench/.venv only

if __name__ == "__main__":
    listen, first, *arguments = sys.argv[1:]
    over_stdio = {"mcpServers": {"echo": {"command": first, "args": arguments}}}
    proxy = create_proxy(first if first.startswith("http://") else over_stdio)  # pyright: ignore
    if listen == "stdio":
        proxy.run(transport="stdio", show_banner=False)  # pyright: ignore
    else:
        proxy.run(  # pyright: ignore
            transport="http", host="127.0.0.1", port=int(listen), show_banner=False, log_level="error"
        )
