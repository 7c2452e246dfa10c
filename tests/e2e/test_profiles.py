"""Profiles over HTTP, with real upstreams: chosen by path, token or the client's name; what is hidden is not there."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from tests.e2e.goat import HttpGoat, Launch, connected, http_goat
from tests.e2e.http_wire import listed_with
from tests.manifests.test_gateway_over_manifests import document
from tests.upstreams.fleet import server

pytestmark = [pytest.mark.anyio, pytest.mark.e2e, pytest.mark.matrix]
LONG = "a_tool_with_a_name_that_is_longer_than_fifty_characters_are"
PROFILES = """
profiles:
  one:
    upstreams: [a]
    tools: {deny: [Bash]}
  reads:
    read_only: true
    name_cap: 128
  mine:
    tools: {allow: [mcp__b, Read]}
    token_file: TOKEN_FILE
profile_of_client: {careful: reads}
"""


@pytest.fixture(scope="module")
def goat(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpGoat]:
    folder = tmp_path_factory.mktemp("profiles")
    (folder / "ws").mkdir()
    entries = {
        "a": server("steady.py", folder, "search"),
        "b": server("steady.py", folder, LONG),
        "items": server("shelf.py", "s"),
    }
    (folder / "servers.json").write_text(json.dumps({"mcpServers": entries}))
    (folder / "goat-mcp.yaml").write_text(PROFILES.replace("TOKEN_FILE", str(folder / "mine.token")))
    options = (
        "--mode",
        "bypassPermissions",
        "--config",
        str(folder / "goat-mcp.yaml"),
        "--upstreams",
        str(folder / "servers.json"),
    )
    with http_goat(Launch(folder, folder / "ws", options)) as running:
        listed_with(running, "mcp__a__pid", "mcp__b__pid", "mcp__items__give")
        yield running


@asynccontextmanager
async def client(
    goat: HttpGoat, mode: str, path: str = "", *, token: str = "", name: str = "somebody"
) -> AsyncGenerator[Client]:
    headers = {"Authorization": f"Bearer {token}"} if token else goat.headers
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        transport = streamable_http_client(f"{goat.url}{path}", http_client=http)
        info = types.Implementation(name=name, version="1")
        async with Client(transport, mode=mode, client_info=info, read_timeout_seconds=60) as session:
            yield session


async def names(session: Client) -> set[str]:
    return {tool.name for tool in (await session.list_tools()).tools}


def of(server: str, listed: set[str]) -> set[str]:
    return {name for name in listed if name.startswith(f"mcp__{server}__")}


async def refusal(session: Client, name: str, **arguments: Any) -> str:
    result = await session.call_tool(name, arguments)
    assert result.is_error
    block = result.content[0]
    assert isinstance(block, types.TextContent)
    return block.text


BOTH = pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])


@BOTH
async def test_a_path_names_a_profile_and_what_that_hides_is_neither_listed_nor_called(
    goat: HttpGoat, mode: str
) -> None:
    # PRF-1, PRF-2
    async with client(goat, mode) as whole, client(goat, mode, "/one") as one:
        everything, listed = await names(whole), await names(one)

        assert of("b", everything) and {"Bash", "Write"} <= everything
        assert listed == everything - of("b", everything) - of("items", everything) - {"Bash"}
        assert "E_TOOL_NOT_IN_CATALOG" in await refusal(one, "mcp__b__pid")
        assert "E_TOOL_NOT_IN_CATALOG" in await refusal(one, "mcp__b__no_such_tool")
        assert "E_TOOL_NOT_IN_CATALOG" in await refusal(one, "Bash", command="true")
        assert not (await one.call_tool("mcp__a__pid", {})).is_error
        assert not (await whole.call_tool("mcp__b__pid", {})).is_error


@BOTH
async def test_a_clients_name_gives_it_a_profile_and_names_are_cut_where_the_profile_says(
    goat: HttpGoat, mode: str
) -> None:  # PRF-1, NAM-4, NAM-5
    async with client(goat, mode, name="careful") as careful, client(goat, mode) as whole:
        listed = await names(careful)

        assert {"Read", "Glob", "Grep"} <= listed
        assert not {"Bash", "Write", "Edit", "TodoWrite"} & listed
        # Nobody but the upstream could say that its tools only read (RSK-3).
        assert of("b", listed) == set()
        assert "E_TOOL_NOT_IN_CATALOG" in await refusal(careful, "Write", file_path="@/x", content="x")
        assert len(max(of("b", await names(whole)), key=len)) == 50


@BOTH
async def test_a_token_leaves_no_more_than_its_profile_whatever_path_or_name_is_used(goat: HttpGoat, mode: str) -> None:
    # PRF-1: it only narrows
    token = token_of_mine(goat)
    async with client(goat, mode, token=token) as mine, client(goat, mode, "/one", token=token) as both:
        listed = await names(mine)

        assert listed == of("b", listed) | {"Read"} and of("b", listed)
        assert await names(both) == {"Read"}
        assert "E_TOOL_NOT_IN_CATALOG" in await refusal(both, "mcp__b__pid")
        assert "E_TOOL_NOT_IN_CATALOG" in await refusal(both, "mcp__a__pid")


@BOTH
async def test_what_a_hidden_server_offers_beside_tools_is_hidden_too(goat: HttpGoat, mode: str) -> None:  # PRF-2
    async with client(goat, mode) as whole, client(goat, mode, "/one") as one:
        theirs = [resource for resource in (await whole.list_resources()).resources if not is_ours(resource.uri)]
        prompts = (await whole.list_prompts()).prompts
        assert theirs and prompts

        assert [entry for entry in (await one.list_resources()).resources if not is_ours(entry.uri)] == []
        assert (await one.list_prompts()).prompts == []
        with pytest.raises(MCPError):
            await one.read_resource(theirs[0].uri)
        with pytest.raises(MCPError):
            await one.get_prompt(prompts[0].name)
        with pytest.raises(MCPError):
            reference = types.PromptReference(type="ref/prompt", name=prompts[0].name)
            await one.complete(reference, {"name": "x", "value": ""})
        assert "items" not in await text(one, "ListMcpResources")
        assert "items" in await text(whole, "ListMcpResources")
        assert "items" in await refusal(one, "ListMcpResources", server="items")
        assert server_names(await one.read_resource("goat://status")) == ["a"]


def token_of_mine(goat: HttpGoat) -> str:
    (line,) = [line for line in goat.said if "of profile mine" in line]
    return Path(line.rpartition(" in ")[2].strip()).read_text().strip()


def is_ours(uri: Any) -> bool:
    return str(uri).startswith("goat://")


async def text(session: Client, tool: str) -> str:
    result = await session.call_tool(tool, {})
    return "".join(block.text for block in result.content if isinstance(block, types.TextContent))


def server_names(status: types.ReadResourceResult) -> Sequence[str]:
    (content,) = status.contents
    assert isinstance(content, types.TextResourceContents)
    return [entry["name"] for entry in json.loads(content.text)["upstreams"]]


async def test_a_path_that_names_no_profile_is_not_found(goat: HttpGoat) -> None:  # R-HTTP-3
    async with httpx2.AsyncClient(headers=goat.headers) as http:
        for path in ("/nobody", "/one/", "/one/two", "/", "/%6fne%2f"):
            answer = await http.post(f"{goat.url}{path}", json={})
            assert (path, answer.status_code) == (path, 404)


async def test_a_profile_that_is_declared_while_it_runs_has_its_path_and_narrows_as_it_changes(tmp_path: Path) -> None:
    folder = tmp_path / "tools"
    document(folder, "Profile", "first", tools={"allow": ["Read"]})
    (tmp_path / "ws").mkdir()
    with http_goat(Launch(tmp_path, tmp_path / "ws", ("--manifests", str(folder)))) as goat:
        async with client(goat, "legacy", "/first") as first:
            before = await names(first)
            document(folder, "Profile", "first", tools={"allow": ["Glob"]})
            document(folder, "Profile", "second", tools={"allow": ["Grep"]})
            with anyio.fail_after(60):
                while await names(first) != {"Glob"}:  # noqa: ASYNC110  # another process looks at the files
                    await anyio.sleep(0.1)
            refused = await refusal(first, "Read", file_path="@/x")
        async with client(goat, "2026-07-28", "/second") as second:
            after = await names(second)

    assert (before, after) == ({"Read"}, {"Grep"})
    assert "E_TOOL_NOT_IN_CATALOG" in refused


async def test_a_process_with_a_profile_serves_nothing_else(tmp_path: Path) -> None:  # PRF-1: by flag
    (tmp_path / "ws").mkdir()
    config = tmp_path / "goat-mcp.yaml"
    config.write_text(
        "profiles:\n  narrow:\n    tools: {allow: [Read, Bash]}\n  reads:\n    read_only: true\n"
        "profile_of_client: {mcp: reads}\n"
    )
    launch = Launch(tmp_path, tmp_path / "ws", ("--config", str(config), "--profile", "narrow"))
    info = types.Implementation(name="mcp", version="1")

    other = types.Implementation(name="other", version="1")
    async with (
        connected(launch, "legacy", client_info=other) as somebody,
        connected(launch, "legacy", client_info=info) as careful,
    ):
        assert await names(somebody) == {"Read", "Bash"}
        assert await names(careful) == {"Read"}
        assert "E_TOOL_NOT_IN_CATALOG" in await refusal(somebody, "Write", file_path="@/x", content="x")
