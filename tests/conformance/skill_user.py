"""What a user does in the suite's client scenarios for skills, with goat-mcp in front of the suite's server.

A host that loads a skill reads its `SKILL.md` and, if it got one, the file that this speaks of.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from mcp import Client
from mcp.shared.exceptions import MCPError

from tests.skill_client import skills


async def _look_at_skills(client: Client, context: Mapping[str, Any]) -> None:
    await client.list_tools()
    await client.list_resources()
    assert await skills(client)
    assert await skills(client)


async def _load_each_skill(client: Client, context: Mapping[str, Any]) -> None:
    for entry in await skills(client):
        with suppress(MCPError):
            await client.read_resource(entry["uri"])
            for file in entry["resources"]:
                await client.read_resource(file["uri"])


SKILL_STEPS: Mapping[str, Callable[[Client, Mapping[str, Any]], Awaitable[None]]] = {
    "sep-2640-client-no-prefetch": _look_at_skills,
    "sep-2640-client-verify-digest": _load_each_skill,
    "sep-2640-client-verify-size": _load_each_skill,
    "sep-2640-client-verify-frontmatter": _load_each_skill,
}
