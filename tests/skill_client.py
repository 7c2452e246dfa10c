"""What a user of skills does with a client: the extension's three methods, which the SDK has no words for yet."""

from __future__ import annotations

from typing import Any

import mcp_types as types
from mcp import Client
from pydantic import TypeAdapter

_ANSWER: TypeAdapter[Any] = TypeAdapter(dict[str, Any])
_OF_HOP = ("resultType", "ttlMs", "cacheScope")


async def ask(client: Client, method: str, **params: Any) -> dict[str, Any]:
    """The answer as it travelled. Raises `MCPError`."""
    request = types.Request[dict[str, Any], str](method=method, params=params)
    return await client.session.send_request(request, _ANSWER)


async def skills(client: Client) -> list[dict[str, Any]]:
    """All pages."""
    found: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        page = await ask(client, "skills/list", **cursor)
        found += page["skills"]
        if "nextCursor" not in page:
            return found
        cursor = {"cursor": page["nextCursor"]}


async def skill_uris(client: Client) -> list[str]:
    return [entry["uri"] for entry in await skills(client)]


async def skill(client: Client, uri: str) -> dict[str, Any]:
    return (await ask(client, "skills/get", uri=uri))["skill"]


async def children(client: Client, uri: str) -> list[tuple[str, str]]:
    """URI and type of each."""
    answer = await ask(client, "resources/directory/read", uri=uri)
    return [(child["uri"], child["mimeType"]) for child in answer["resources"]]


async def text(client: Client, uri: str) -> str:
    """The one content of a file."""
    (content,) = (await client.read_resource(uri)).contents
    assert isinstance(content, types.TextResourceContents)
    assert content.uri == uri
    return content.text


def without_hop(answer: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in answer.items() if key not in (*_OF_HOP, "_meta")}
