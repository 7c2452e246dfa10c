"""FastMCP's proxy, as its documentation sets it up. Runs in its own environment (`make bench` makes it).

Arguments: `stdio COMMAND ARG...` relays a stdio server, `PORT URL` relays an HTTP server over HTTP.
"""

from __future__ import annotations

import sys

from fastmcp.server import create_proxy  # pyright: ignore  # installed in bench/.venv only

if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        entry = {"command": sys.argv[2], "args": sys.argv[3:]}
        create_proxy({"mcpServers": {"echo": entry}}).run(transport="stdio", show_banner=False)  # pyright: ignore
    else:
        create_proxy(sys.argv[2]).run(  # pyright: ignore
            transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False, log_level="error"
        )
