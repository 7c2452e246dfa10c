"""FastMCP's BM25 search over given definitions. Runs in its own environment (`make bench-peers` makes it).

Standard input: JSON with `tools`, as `tools/list` has them, and `queries`. Standard output: for each query the names
that its search tool found, and the text that a model reads.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import anyio
from fastmcp import Client, FastMCP  # pyright: ignore  # nothing of it is known here: it is installed in bench/.venv only
from fastmcp.server.transforms.search import BM25SearchTransform  # pyright: ignore  # as above
from fastmcp.tools.base import Tool  # pyright: ignore  # as above


async def main() -> None:
    given: Any = json.load(sys.stdin)
    server = FastMCP("tools")  # pyright: ignore  # as above
    for one in given["tools"]:
        tool: Any = Tool(  # pyright: ignore  # as above
            name=one["name"],
            title=one.get("title"),
            description=one.get("description"),
            parameters=one["inputSchema"],
            output_schema=one.get("outputSchema"),
            annotations=one.get("annotations"),
        )
        server.add_tool(tool)  # pyright: ignore  # as above
    server.add_transform(BM25SearchTransform())  # pyright: ignore  # as above
    found: list[dict[str, Any]] = []
    async with Client(server) as client:  # pyright: ignore  # as above
        for query in given["queries"]:
            answer: Any = await client.call_tool("search_tools", {"query": query})  # pyright: ignore  # as above
            text: str = "".join(block.text for block in answer.content)  # pyright: ignore  # as above
            found.append({"names": [one["name"] for one in json.loads(text)] if text else [], "text": text})
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    anyio.run(main)
