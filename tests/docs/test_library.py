"""The programs on the page about embedding run, and do what the page says."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

import goat_mcp
from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.embed import open_tools
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.settings.loading import load_settings
from goat_mcp.state.directory import StateDirectory
from tests.docs.test_documents import ROOT, blocks
from tests.quick_start import script_command
from tests.tool_doubles import FakeTool, spec

pytestmark = pytest.mark.anyio
PAGE = ROOT / "docs" / "library.md"
BOUND_S = 60


def program(number: int) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(blocks(PAGE, "python")[number], names)
    return names


def asking_for(*calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    tool_calls = [
        {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for number, (name, arguments) in enumerate(calls)
    ]
    return {"role": "assistant", "content": None, "tool_calls": tool_calls}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "note.txt").write_text("buy hay\n")
    monkeypatch.chdir(tmp_path / "ws")
    monkeypatch.setenv("GOAT_MCP_STATE_DIR", str(tmp_path / "state"))


async def test_the_conversation_on_the_page_runs_tools_and_ends_with_the_models_words() -> None:
    seen: list[list[dict[str, Any]]] = []
    replies = [
        asking_for(("Read", {"file_path": "@note.txt"}), ("Bash", {"command": "echo from bash"})),
        {"role": "assistant", "content": "It says: buy hay."},
    ]

    async def complete(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> dict[str, Any]:
        seen.append(list(messages))
        assert [made["function"]["name"] for made in tools] == ["Bash", "Read", "Write", "Edit", "Glob", "Grep"]
        return replies[len(seen) - 1]

    answer = await program(0)["converse"](complete, "What does the note say?")

    assert answer == "It says: buy hay."
    assert [message["content"] for message in seen[1][-2:]] == ["1\tbuy hay", "from bash"]


async def test_the_lines_in_the_readme_run() -> None:
    (block,) = blocks(ROOT / "README.md", "python")
    message = asking_for(("Read", {"file_path": "@note.txt"}))
    names: dict[str, Any] = {"open_tools": open_tools, "message": message}

    await eval(compile(block, "README.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)

    assert "Read" in [made["function"]["name"] for made in names["definitions"]]
    assert names["turn"].messages == [{"role": "tool", "tool_call_id": "call_0", "content": "1\tbuy hay"}]


async def test_the_ask_on_the_page_allows_a_file_and_refuses_a_command() -> None:
    async with open_tools({"workspace": ["."]}, ask=program(1)["ask"]) as tools:
        turn = await tools.run(
            asking_for(
                ("Write", {"file_path": "@new.txt", "content": "x"}), ("Bash", {"command": "true"}), ("Glob", {})
            )["tool_calls"]
        )

    assert [message["content"].splitlines()[0] for message in turn.messages] == [
        f"Created {Path.cwd() / 'new.txt'} (1 line).",
        "Error: the user refused Bash",
        "Error: not run: the batch was interrupted (the user refused Bash)",
    ]
    assert turn.interrupted


async def test_the_box_on_the_page_is_called_and_offered() -> None:
    names = program(3)

    assert await names["called"]() == "Hello, World!"
    offered = await names["offered"]()
    assert {"Read", "greet", "add"} <= set(offered)
    failed = await names["box"].call("greet", {"name": "nobody"})
    assert (failed.error_code, failed.text.splitlines()[0]) == ("E_TOOL", "no such person")


@pytest.mark.e2e
async def test_the_server_on_the_page_serves_its_function_over_mcp(tmp_path: Path) -> None:
    script = tmp_path / "sums.py"
    script.write_text(blocks(PAGE, "python")[4])
    server = StdioServerParameters(
        command=sys.executable, args=[str(script)], env={"GOAT_MCP_STATE_DIR": str(tmp_path / "state")}
    )

    with anyio.fail_after(BOUND_S):
        async with Client(stdio_client(server)) as client:
            listed = [tool.name for tool in (await client.list_tools()).tools]
            result: Any = await client.call_tool("add", {"a": 20, "b": "22"})

    assert listed == ["add"]
    assert (result.content[0].text, result.is_error) == ("42", False)


@pytest.mark.e2e
async def test_the_session_on_the_page_gives_its_tools_to_a_box() -> None:
    command, *words = script_command(ROOT / "examples" / "weather_stdio.py")
    server = stdio_client(StdioServerParameters(command=command, args=words))

    with anyio.fail_after(BOUND_S):
        assert "Dunmere" in await program(5)["weather"](server, "Dunmere")


def test_pages_and_examples_import_only_what_is_public() -> None:
    pages = [block for page in (ROOT / "docs").glob("*.md") for block in blocks(page, "python")]
    sources = [*pages, *(file.read_text() for file in (ROOT / "examples" / "extensions").glob("*.py"))]

    imports = [
        node
        for source in sources
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] == "goat_mcp"
    ]

    assert imports
    assert {str(node.module) for node in imports} <= {"goat_mcp", "goat_mcp.embed", "goat_mcp.extensions"}
    of_the_package = {alias.name for node in imports if node.module == "goat_mcp" for alias in node.names}
    assert of_the_package <= set(goat_mcp.__all__)


def test_the_settings_on_the_page_about_choosing_tools_select_what_it_says(tmp_path: Path) -> None:
    block, _profiles = blocks(ROOT / "docs" / "choosing-tools.md", "yaml")
    file = tmp_path / "goat-mcp.yaml"
    file.write_text(block)
    gateway = Gateway(load_settings({}, config_file=file), approval=Approval.HOST, state=StateDirectory(tmp_path / "s"))
    tools = [FakeTool(spec(f"mcp__github__{name}", toolset="upstream")) for name in ("get_issue", "delete_repository")]
    gateway.registry.replace_source("upstream:github", tools)

    names = [tool.spec.name for tool in gateway.catalog.tools()]

    assert names == ["Read", "Glob", "Grep", "TodoWrite", "mcp__github__get_issue"]


async def test_the_progress_callback_on_the_page_shows_each_calls_start_and_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with open_tools({"workspace": ["."]}, progress=program(2)["show"]) as tools:
        await tools.run(asking_for(("Read", {"file_path": "@note.txt"}))["tool_calls"])

    started, ended = capsys.readouterr().out.splitlines()
    assert started == "call_0: Read started"
    assert ended.startswith("call_0: Read finished in 0.")
