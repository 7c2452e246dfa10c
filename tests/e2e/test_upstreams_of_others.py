"""Servers that others wrote, behind goat-mcp: their tools beside the built-in ones, their answers unchanged (REL-1)."""

from __future__ import annotations

import json
import sys
from collections.abc import Generator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp import StdioServerParameters

from tests.e2e.conftest import UNASKED, fill, upstream_file
from tests.e2e.goat import HttpGoat, Launch, connected, http_goat, listed_with
from tests.e2e.node_side import Node
from tests.e2e.test_clients import BUILT_IN

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]

# Every tool of server-everything that needs nothing of the client, with arguments that give the same answer twice.
# Two have tests of their own: get-resource-reference (its text holds the time) and get-env (it shows the process).
EVERYTHING_CALLS: list[tuple[str, dict[str, Any]]] = [
    ("echo", {"message": "Grüße, \u2028 \U0001f410"}),
    ("get-sum", {"a": 2, "b": 40.5}),
    ("get-tiny-image", {}),
    ("get-annotated-message", {"messageType": "error", "includeImage": True}),
    ("get-annotated-message", {"messageType": "debug"}),
    ("get-resource-links", {"count": 4}),
    ("get-structured-content", {"location": "Chicago"}),
    ("trigger-long-running-operation", {"duration": 0.2, "steps": 2}),
    ("gzip-file-as-resource", {"name": "a.gz", "data": "data:text/plain,hello", "outputType": "resource"}),
    ("gzip-file-as-resource", {"name": "b.gz", "data": "data:text/plain,hello", "outputType": "resourceLink"}),
    ("toggle-simulated-logging", {}),
    ("toggle-simulated-logging", {}),
    ("toggle-subscriber-updates", {}),
    ("toggle-subscriber-updates", {}),
]
SECRETS = {"EXAMPLE_API_KEY": "not-for-servers", "LD_EXAMPLE": "not-for-servers"}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that server-filesystem serves."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "a.txt").write_text("alpha\nbeta\n")
    return folder


@pytest.fixture(scope="module")
def servers(node: Node, files: Path) -> dict[str, StdioServerParameters]:
    everything = node.server_command("server-everything", "stdio")
    filesystem = node.server_command("server-filesystem", str(files))
    return {
        "everything": StdioServerParameters(command=everything[0], args=everything[1:]),
        "files": StdioServerParameters(command=filesystem[0], args=filesystem[1:]),
        "time": StdioServerParameters(
            command=sys.executable, args=["-m", "mcp_server_time", "--local-timezone", "UTC"]
        ),
    }


@pytest.fixture(scope="module")
def launch_with_servers(
    servers: Mapping[str, StdioServerParameters], tmp_path_factory: pytest.TempPathFactory
) -> Launch:
    folder = tmp_path_factory.mktemp("goat")
    entries = {name: {"command": server.command, "args": server.args} for name, server in servers.items()}
    file = upstream_file(folder / "upstreams.json", **entries)
    return Launch(folder, fill(folder / "workspace"), (*UNASKED, "--upstreams", str(file)))


@pytest.fixture(scope="module")
def goat_with_servers(launch_with_servers: Launch) -> Generator[HttpGoat]:
    over_http = replace(launch_with_servers, folder=launch_with_servers.folder / "http", variables=SECRETS)
    with http_goat(over_http) as goat:
        yield goat


async def test_their_tools_are_listed_beside_the_built_in_ones(
    servers: Mapping[str, StdioServerParameters], launch_with_servers: Launch
) -> None:
    expected: dict[str, Any] = {}
    for name, server in servers.items():
        async with connected(server, "legacy") as direct:
            for tool in (await direct.list_tools()).tools:
                if not needs_tasks(tool):
                    expected[f"mcp__{name}__{tool.name}"] = tool

    async with connected(launch_with_servers, "legacy") as client:
        tools = await listed_with(client, *expected)
        listed = {tool.name: tool for tool in tools if not needs_tasks(tool)}

    assert sorted(set(listed) - set(expected)) == BUILT_IN
    # A name over 50 characters or with other characters would carry a suffix (NAM-4); none of these has one.
    assert {name: wire(listed[name]) for name in expected} == {
        name: {**wire(tool), "name": name} for name, tool in expected.items()
    }


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_every_answer_of_server_everything_arrives_as_it_was_sent(
    servers: Mapping[str, StdioServerParameters], goat_with_servers: HttpGoat, mode: str
) -> None:
    async with connected(servers["everything"], "legacy") as direct, connected(goat_with_servers, mode) as client:
        await listed_with(client, "mcp__everything__echo")
        for tool, arguments in EVERYTHING_CALLS:
            sent = await direct.call_tool(tool, arguments)

            received = await client.call_tool(f"mcp__everything__{tool}", arguments)

            assert relayed(received) == relayed(sent), tool


async def test_wrong_arguments_are_refused_in_our_words(goat_with_servers: HttpGoat) -> None:
    async with connected(goat_with_servers, "auto") as client:
        await listed_with(client, "mcp__everything__echo")
        refused = relayed(await client.call_tool("mcp__everything__get-resource-links", {"count": 99, "wrong": 1}))

    assert refused["isError"] and refused["structuredContent"]["error"]["code"] == "E_INPUT"
    assert refused["content"][0]["text"].startswith("count: wants at most 10; got int 99")


async def test_a_resource_reference_arrives_whole(
    servers: Mapping[str, StdioServerParameters], goat_with_servers: HttpGoat
) -> None:
    # Its text holds the time of the call, so the two calls are compared without that.
    arguments = {"resourceType": "Text", "resourceId": 1}
    async with connected(servers["everything"], "legacy") as direct, connected(goat_with_servers, "auto") as client:
        await listed_with(client, "mcp__everything__echo")
        sent = relayed(await direct.call_tool("get-resource-reference", arguments))
        received = relayed(await client.call_tool("mcp__everything__get-resource-reference", arguments))

    texts = [answer["content"][1]["resource"].pop("text") for answer in (sent, received)]
    assert received == sent
    assert [text.split(" at ")[0] for text in texts] == [texts[0].split(" at ")[0]] * 2


async def test_a_server_does_not_see_the_secrets_of_our_environment(goat_with_servers: HttpGoat) -> None:
    async with connected(goat_with_servers, "auto") as client:
        await listed_with(client, "mcp__everything__get-env")
        answer = await client.call_tool("mcp__everything__get-env")

    seen = json.loads(answer.content[0].model_dump()["text"])
    assert "PATH" in seen
    assert [name for name in seen if name in SECRETS or name == "GOAT_MCP_STATE_DIR"] == []


# FLW-1
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_progress_of_a_long_operation_arrives(goat_with_servers: HttpGoat, mode: str) -> None:
    seen: list[tuple[float, float | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total))

    async with connected(goat_with_servers, mode) as client:
        await listed_with(client, "mcp__everything__echo")
        await client.call_tool(
            "mcp__everything__trigger-long-running-operation", {"duration": 1, "steps": 4}, progress_callback=note
        )

    # Ours may add a start and an end around theirs; theirs arrive in order, none missing.
    assert [step for step in seen if step[1] == 4] == [(1, 4), (2, 4), (3, 4), (4, 4)]


async def test_files_and_times_are_asked_through_goat(
    servers: Mapping[str, StdioServerParameters], goat_with_servers: HttpGoat, files: Path
) -> None:
    calls: list[tuple[str, str, dict[str, Any]]] = [
        ("files", "read_text_file", {"path": str(files / "a.txt")}),
        ("files", "list_directory", {"path": str(files)}),
        ("files", "read_text_file", {"path": str(files / "missing.txt")}),
        ("time", "convert_time", {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}),
        ("time", "convert_time", {"source_timezone": "Mars", "time": "12:00", "target_timezone": "UTC"}),
    ]
    async with connected(goat_with_servers, "auto") as client:
        await listed_with(client, "mcp__files__read_text_file", "mcp__time__convert_time")
        for server in ("files", "time"):
            async with connected(servers[server], "legacy") as direct:
                for _, tool, arguments in (call for call in calls if call[0] == server):
                    sent = await direct.call_tool(tool, arguments)

                    received = await client.call_tool(f"mcp__{server}__{tool}", arguments)

                    assert relayed(received) == relayed(sent), (tool, arguments)


async def test_a_node_client_reaches_a_node_server_through_goat(node: Node, goat_with_servers: HttpGoat) -> None:
    call = {"call": "mcp__everything__get-sum", "arguments": {"a": 20, "b": 22}}
    half_a_second = {"duration": 0.5, "steps": 2}
    long = {"call": "mcp__everything__trigger-long-running-operation", "progress": True, "arguments": half_a_second}

    sessions = [
        node.session(client, era, goat_with_servers, [{"list": True}, call, long])
        for client, era in (("v2", "legacy"), ("v2", "2026-07-28"), ("v1", "legacy"))
    ]

    for session in sessions:
        _, total, operation = session["results"]
        assert total["content"] == [{"type": "text", "text": "The sum of 20 and 22 is 42."}]
        assert [step["progress"] for step in operation["progress"] if step.get("total") == 2] == [1, 2]


def needs_tasks(tool: Any) -> bool:
    """Tools that only work as protocol tasks, which goat-mcp does not relay (ERA-7), are another matter."""
    return tool.execution is not None and tool.execution.task_support == "required"


def wire(model: Any) -> dict[str, Any]:
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


def relayed(result: Any) -> dict[str, Any]:
    """A result without what belongs to one hop."""
    answer = wire(result)
    answer.pop("resultType", None)
    meta = {
        name: value
        for name, value in answer.pop("_meta", {}).items()
        if not name.startswith("io.modelcontextprotocol/")
    }
    return {**answer, "isError": answer.get("isError", False), **({"_meta": meta} if meta else {})}
