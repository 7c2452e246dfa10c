"""An upstream whose tools have an effect, and then ask or take their time. Usage: FILE, where each effect is a line.

It speaks the handshake era over stdio.
"""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

from tests.conformance.fixture.one_era import HANDSHAKE, one_era

EFFECTS = Path(sys.argv[1])
server = MCPServer("effects")


class Day(BaseModel):
    day: str


def happened(name: str) -> None:
    with EFFECTS.open("a") as file:
        file.write(f"{name}\n")


@server.tool()
async def pay_then_ask(name: str, ctx: Context) -> str:
    """Has its effect, and asks afterwards."""
    happened(name)
    answer = await ctx.elicit("Which day?", Day)
    return f"{name}: {answer.action}"


@server.tool()
async def pay_slowly(name: str, for_s: float) -> str:
    """Has its effect, and answers later. Being cancelled is an effect, too."""
    happened(name)
    try:
        await anyio.sleep(for_s)
    except anyio.get_cancelled_exc_class():
        happened(f"{name}, cancelled")
        raise
    return f"{name}: paid"


@server.tool()
async def pay(name: str) -> str:
    """Has its effect."""
    happened(name)
    return f"{name}: paid"


async def main() -> None:
    lowlevel = server._lowlevel_server  # pyright: ignore[reportPrivateUsage]  # what its `run` uses, over other streams
    async with one_era(HANDSHAKE) as (read, write):
        await lowlevel.run(read, write, lowlevel.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
