"""The least a FastMCP server can be: one echo tool over stdio. It runs in `bench/.venv`."""

from __future__ import annotations

from fastmcp import FastMCP  # pyright: ignore  # installed in bench/.venv only

server = FastMCP("bare")  # pyright: ignore


@server.tool  # pyright: ignore
def echo(text: str) -> str:
    """Say the text again."""
    return text


if __name__ == "__main__":
    server.run(transport="stdio", show_banner=False)  # pyright: ignore
