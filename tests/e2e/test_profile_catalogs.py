"""Profiles that change how a catalog is shown: the dialect of its schemas, and the budget before tools are searched."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from mcp import Client

from tests.e2e.goat import HttpGoat, Launch, http_goat
from tests.e2e.http_wire import listed_with
from tests.e2e.test_profiles import BOTH, client, names, refusal
from tests.e2e.wire import text_of
from tests.upstreams.changing import Changing, tool

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

META_TOOLS = {"search_tools", "describe_tool", "call_tool", "call_tool_readonly"}
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {"size": {"$ref": "#/$defs/size"}, "note": {"type": ["string", "null"]}},
    "required": ["size"],
    "$defs": {"size": {"type": "string", "enum": ["s", "m"], "format": "clothes"}},
}
PROFILES = """
profiles:
  flat:
    schema_dialect: gemini
  small:
    token_budget: 1
  ample:
    token_budget: 1000000
profile_of_client: {googly: flat}
"""


@pytest.fixture(scope="module")
def goat(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpGoat]:
    folder = tmp_path_factory.mktemp("catalogs")
    (folder / "ws").mkdir()
    wardrobe = Changing(folder)
    wardrobe.offer(tool("fit", "Finds what fits.", inputSchema=SCHEMA))
    (folder / "servers.json").write_text(json.dumps({"mcpServers": {"w": wardrobe.entry()}}))
    (folder / "goat-mcp.yaml").write_text(PROFILES)
    files = ("--config", str(folder / "goat-mcp.yaml"), "--upstreams", str(folder / "servers.json"))
    with http_goat(Launch(folder, folder / "ws", ("--mode", "bypassPermissions", *files))) as running:
        listed_with(running, "mcp__w__fit")
        yield running


async def schema_of(session: Client, name: str) -> dict[str, Any]:
    (schema,) = [one.input_schema for one in (await session.list_tools()).tools if one.name == name]
    return schema


async def ran(session: Client, called: str, /, **arguments: Any) -> str:
    result = await session.call_tool(called, arguments)
    assert not result.is_error, result
    return text_of(result.model_dump(by_alias=True))


@BOTH
@pytest.mark.parametrize(("path", "name"), [("/flat", "somebody"), ("", "googly")], ids=["by path", "by name"])
async def test_a_profile_shows_schemas_in_its_dialect_and_its_calls_are_those_of_everybody(
    goat: HttpGoat, mode: str, path: str, name: str
) -> None:
    # PRF-1, SCH-2
    async with client(goat, mode) as whole, client(goat, mode, path, name=name) as flat:
        usual, plain = await schema_of(whole, "mcp__w__fit"), await schema_of(flat, "mcp__w__fit")

        assert usual["properties"] == SCHEMA["properties"]
        assert usual["$defs"] == SCHEMA["$defs"]
        assert "$ref" not in json.dumps(plain) and "$defs" not in plain and "$schema" not in plain
        assert plain["properties"]["size"] == {
            "type": "string",
            "enum": ["s", "m"],
            "description": "Format: clothes.",
        }
        assert plain["required"] == ["size"]
        assert "list" not in {type(one.get("type")).__name__ for one in plain["properties"].values()}
        assert await names(flat) == await names(whole)
        assert await ran(flat, "mcp__w__fit", size="s", note=None) == "fit ran"


@BOTH
async def test_a_profiles_budget_decides_whether_tools_of_servers_are_listed_or_searched_for(
    goat: HttpGoat, mode: str
) -> None:
    # PRF-1, DEF-1, DEF-2, DEF-3
    async with client(goat, mode, "/small") as small, client(goat, mode, "/ample") as ample:
        few, all_of_them = await names(small), await names(ample)

        assert not META_TOOLS & all_of_them and {"mcp__w__fit", "Read"} <= all_of_them
        assert few == all_of_them - {"mcp__w__fit", "mcp__w__announce"} | META_TOOLS
        assert "mcp__w__fit" in await ran(small, "search_tools", query="what fits")
        assert await ran(small, "call_tool", name="mcp__w__fit", arguments={"size": "m"}) == "fit ran"
        # What is deferred is there all the same; what is not in the catalog is not.
        assert await ran(small, "mcp__w__fit", size="m") == "fit ran"
        assert "E_TOOL_NOT_IN_CATALOG" in await refusal(ample, "search_tools", query="fit")
