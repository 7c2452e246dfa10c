"""FastMCP's proxy, as its documentation sets it up. Runs in its own environment (`make bench-peers` makes it).

Arguments: `stdio` or the port to serve HTTP on, then what to relay: a URL, a file of `mcpServers` and how its tools are
reached (`direct`, `search` or `code`), or a command and its arguments.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from fastmcp.experimental.transforms.code_mode import CodeMode  # pyright: ignore  # installed in bench/.venv only
from fastmcp.server import create_proxy  # pyright: ignore
from fastmcp.server.transforms.search import BM25SearchTransform  # pyright: ignore

if __name__ == "__main__":
    listen, first, *arguments = sys.argv[1:]
    if first.startswith("http://"):
        target = first
    elif first.endswith(".json"):
        target = json.loads(Path(first).read_text())
    else:
        target = {"mcpServers": {"echo": {"command": first, "args": arguments}}}
    proxy = create_proxy(target)  # pyright: ignore
    if first.endswith(".json") and arguments == ["search"]:
        proxy.add_transform(BM25SearchTransform())  # pyright: ignore
    elif first.endswith(".json") and arguments == ["code"]:
        proxy.add_transform(CodeMode())  # pyright: ignore
    if listen == "stdio":
        proxy.run(transport="stdio", show_banner=False)  # pyright: ignore
    else:
        proxy.run(  # pyright: ignore
            transport="http", host="127.0.0.1", port=int(listen), show_banner=False, log_level="error"
        )
