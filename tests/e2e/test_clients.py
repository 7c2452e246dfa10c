"""MCP clients that others wrote, each connected to a real goat-mcp in every way it can."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any

import pytest

from tests.contract.test_every_tool import HINTS as CONTRACT
from tests.contract.test_every_tool import TOOLS
from tests.e2e.goat import HttpGoat, Launch, connected
from tests.e2e.node_side import Node
from tests.e2e.resident_launch import ResidentLaunch
from tests.e2e.wire import text_of
from tests.resident_processes import end_residents_below

pytestmark = [pytest.mark.e2e, pytest.mark.anyio, pytest.mark.matrix]

# What the process has must be what a client sees, with the hints of the contract's table; teams are off.
BUILT_IN = sorted(tool.spec.name for tool in TOOLS if tool.spec.toolset != "teams")
HINTS = {name: CONTRACT[name] for name in BUILT_IN}
READ_TEXT = '1\tdef greet(name):\n2\t    return f"Hello, {name}!"'
TRANSPORTS = ["stdio", "http", pytest.param("resident", marks=pytest.mark.linux_only("has a resident process"))]
BOTH_ERAS = ["legacy", "2026-07-28"]
Target = Launch | HttpGoat


@pytest.fixture(params=TRANSPORTS)
def target(request: pytest.FixtureRequest, shared_launch: Launch) -> Generator[Target]:
    """One goat-mcp over each transport; the HTTP one is shared, a stdio client starts its own, or a launcher."""
    if request.param != "resident":
        yield request.getfixturevalue("shared_http") if request.param == "http" else shared_launch
        return
    launch: ResidentLaunch = request.getfixturevalue("resident_launch")
    before = len(launch.forks)
    yield launch
    assert len(launch.forks) > before, "no fork of the resident process has served this client"


@pytest.fixture(scope="module")
def resident_launch(shared_launch: Launch, tmp_path_factory: pytest.TempPathFactory) -> Generator[ResidentLaunch]:
    folder = tmp_path_factory.mktemp("run")
    folder.chmod(0o700)
    yield ResidentLaunch.like(shared_launch, folder)
    end_residents_below(folder)


def steps(launch: Launch) -> list[Mapping[str, Any]]:
    return [
        {"list": True},
        {"call": "Read", "arguments": {"file_path": str(launch.workspace / "src/greeting.py")}},
        {"call": "Bash", "arguments": {"command": "echo out; echo err >&2"}},
        {"call": "Grep", "arguments": {"pattern": "goat", "output_mode": "content"}},
        {"call": "NoSuchTool"},
        {"call": "Glob", "arguments": {"pattern": "**/*.py"}},
    ]


def assert_as_expected(results: Sequence[Any], launch: Launch) -> None:
    listed, read, bash, grep, unknown, glob = results
    assert hints_of(listed) == HINTS
    assert text_of(read) == READ_TEXT
    assert text_of(bash) == "out\nerr"
    assert text_of(grep) == f"{launch.workspace}/notes.md:3:The goat eats at noon."
    assert unknown["error"]["code"] == -32602
    assert "tool not found: NoSuchTool" in unknown["error"]["message"]
    assert text_of(glob) == f"{launch.workspace}/src/greeting.py"


def hints_of(tools: Sequence[Mapping[str, Any]]) -> dict[str, tuple[Any, ...]]:
    """The four hints of each tool, all of which must be stated, beside a title that says more than the name."""
    assert [tool["name"] for tool in tools if tool["title"] in ("", tool["name"])] == []
    names = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
    return {tool["name"]: tuple(tool["annotations"][name] for name in names) for tool in tools}


def test_the_inspector_lists_the_tools_with_all_hints_and_a_title(node: Node, target: Target) -> None:
    listed = node.inspect(target, "--method", "tools/list")

    assert hints_of(listed["tools"]) == HINTS


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("Read", ("file_path={workspace}/src/greeting.py",), READ_TEXT),
        ("Bash", ("command=echo it works",), "it works"),
        ("Grep", ("pattern=goat", "output_mode=content"), "{workspace}/notes.md:3:The goat eats at noon."),
    ],
)
def test_the_inspector_calls(
    node: Node, target: Target, shared_launch: Launch, tool: str, arguments: tuple[str, ...], expected: str
) -> None:
    pairs = [argument.format(workspace=shared_launch.workspace) for argument in arguments]

    result = node.inspect(target, "--method", "tools/call", "--tool-name", tool, "--tool-arg", *pairs)

    assert text_of(result) == expected.replace("{workspace}", str(shared_launch.workspace))


# ERA-1
@pytest.mark.parametrize("era", BOTH_ERAS)
def test_the_typescript_client_works_in_both_eras(node: Node, target: Target, shared_launch: Launch, era: str) -> None:
    session = node.session("v2", era, target, steps(shared_launch))

    assert session["protocolVersion"] == ("2025-11-25" if era == "legacy" else era)
    assert_as_expected(session["results"], shared_launch)


def test_the_older_typescript_client_works(node: Node, target: Target, shared_launch: Launch) -> None:
    session = node.session("v1", "legacy", target, steps(shared_launch))

    assert session["protocolVersion"] == "2025-11-25"
    assert_as_expected(session["results"], shared_launch)


# ERA-1
@pytest.mark.parametrize("mode", ["legacy", "auto", "2026-07-28"])
async def test_the_python_client_works(target: Target, shared_launch: Launch, mode: str) -> None:
    from mcp import MCPError

    results: list[Any] = []
    async with connected(target, mode) as client:
        for step in steps(shared_launch):
            if "list" in step:
                listed = (await client.list_tools()).tools
                results.append([tool.model_dump(by_alias=True, mode="json") for tool in listed])
                continue
            try:
                result = await client.call_tool(step["call"], step.get("arguments"))
                results.append(result.model_dump(by_alias=True, mode="json", exclude_none=True))
            except MCPError as refused:
                results.append({"error": {"code": refused.error.code, "message": refused.error.message}})
        version = client.protocol_version

    assert version == ("2025-11-25" if mode == "legacy" else "2026-07-28")
    assert_as_expected(results, shared_launch)
