"""`goat-mcp demo`: the main job, end to end, with a real client, a real server and two real upstreams."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import click

from goat_mcp.cli import flags
from goat_mcp.cli.exit_codes import OK, TOOL_ERROR
from goat_mcp.cli.terminal import console, escaped, wrapped_table

if TYPE_CHECKING:  # the client side is loaded when the demo runs
    from mcp import Client
    from rich.console import Console

START_TIMEOUT_S = 60.0
_SHOWN_LINES = 14

_FILES = {
    "README.md": "# Greeter\n\nSays hello.\n",
    "src/greeter.py": 'def greet(name):\n    # TODO: greet politely\n    return "hi " + name\n',
    "src/main.py": 'from greeter import greet\n\n# TODO: read the name from the command line\nprint(greet("world"))\n',
}


@dataclass(frozen=True)
class Step:
    """One call of the demo: what it shows, and whether it is meant to be refused."""

    title: str
    tool: str
    arguments: Mapping[str, Any]
    refused: bool = False


@click.command
@flags.as_json
def demo(as_json: bool) -> int:
    """Show the main job in a throw-away workspace: one catalog, real calls, an upstream call, a refused path."""
    examples = _examples_folder()
    out = console(stderr=as_json)
    with tempfile.TemporaryDirectory(prefix="goat-mcp-demo-") as folder, _notes_server(examples) as notes_url:
        report = anyio.run(_run, Path(folder), examples, notes_url, out)
    if as_json:
        click.echo(json.dumps(report))
    good, steps = sum(step["as_expected"] for step in report["steps"]), len(report["steps"])
    out.print(f"\n{good} of {steps} steps went as they should. The workspace is gone again.")
    out.print("Next, started as you started this: [bold]goat-mcp install HOST --workspace DIR[/]")
    return OK if good == steps else TOOL_ERROR


def _examples_folder() -> Path:
    """The example servers: beside the package when installed, at the root of a checkout otherwise."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "examples", package.parent / "examples"):
        if (folder / "weather_stdio.py").is_file():
            return folder
    raise click.ClickException("the example servers are not installed; reinstall goat-mcp")


async def _run(folder: Path, examples: Path, notes_url: str, out: Console) -> dict[str, Any]:
    from mcp import MCPError

    workspace = folder / "greeter"
    for name, text in _FILES.items():
        file = workspace / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    out.print(f"[bold]A throw-away workspace[/] in {workspace}")
    out.print("Two upstream servers: [cyan]weather[/] over stdio, [cyan]notes[/] over HTTP")
    upstreams = folder / "upstreams.json"
    upstreams.write_text(
        json.dumps(
            {
                "mcpServers": {
                    "weather": {"command": sys.executable, "args": [str(examples / "weather_stdio.py")]},
                    "notes": {"url": notes_url},
                }
            }
        )
    )
    out.print("Starting goat-mcp over stdio and connecting a client ...")
    log = folder / "server.log"
    try:
        async with _client(folder, workspace, upstreams, log) as client:
            tools = (await client.list_tools()).tools
            _show_catalog(out, tools)
            steps = [await _show(out, client, step) for step in _steps(workspace)]
            steps.append(await _background(out, client))
    except (MCPError, ExceptionGroup) as problem:
        raise click.ClickException(f"the server of the demo ended: {escaped(log.read_text()).strip()}") from problem
    return {"tools": [tool.name for tool in tools], "steps": steps}


def _steps(workspace: Path) -> list[Step]:
    greeter = str(workspace / "src" / "greeter.py")
    return [
        Step("Search the workspace", "Grep", {"pattern": "TODO", "output_mode": "content"}),
        Step("Read a file", "Read", {"file_path": greeter}),
        Step(
            "Edit it; the answer is a diff",
            "Edit",
            {"file_path": greeter, "old_string": 'return "hi " + name', "new_string": 'return f"Good day, {name}."'},
        ),
        Step("Run it", "Bash", {"command": f"{sys.executable} src/main.py"}),
        Step("Call an upstream tool, over stdio", "mcp__weather__current_weather", {"town": "Dunmere"}),
        Step("Call an upstream tool, over HTTP", "mcp__notes__search_notes", {"query": "goat"}),
        Step("A path outside the workspace is refused", "Read", {"file_path": "/etc/passwd"}, refused=True),
    ]


@asynccontextmanager
async def _client(folder: Path, workspace: Path, upstreams: Path, log: Path) -> AsyncGenerator[Client]:
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "goat_mcp", "serve", "--workspace", str(workspace), "--upstreams", str(upstreams)],
        env={**_without_settings(), "XDG_CONFIG_HOME": str(folder), "GOAT_MCP_STATE_DIR": str(folder / "state")},
    )
    with log.open("w") as errors:
        async with Client(stdio_client(server, errlog=errors)) as client:
            yield client


def _without_settings() -> dict[str, str]:
    """The demo shows goat-mcp as it comes, not as it is set up here."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GOAT_MCP_")}


@contextmanager
def _notes_server(examples: Path) -> Generator[str]:
    """Start the HTTP example on a free port of loopback; yields its URL once it says that it listens."""
    process = subprocess.Popen(
        [sys.executable, str(examples / "notes_http.py"), "--port", "0"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        yield _announced_url(process)
    finally:
        process.terminate()
        process.wait(timeout=10)


def _announced_url(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and (line := process.stderr.readline()):
        if "http://" in line:
            return line[line.index("http://") :].split()[0]
    raise RuntimeError("the example server did not start")


def _show_catalog(out: Console, tools: list[Any]) -> None:
    rows: list[list[str]] = []
    for tool in tools:
        source = tool.name.split("__")[1] if tool.name.startswith("mcp__") else "built in"
        annotations = tool.annotations
        if annotations is None or annotations.read_only_hint is None:
            hints = "none given"
        else:
            hints = "reads" if annotations.read_only_hint else "changes"
        rows.append([tool.name, source, hints, _first_sentence(tool.description or "")])
    out.print("\n[bold]One catalog[/]")
    out.print(wrapped_table(("tool", "from", "it", "what it does"), rows))


def _first_sentence(description: str) -> str:
    line = (description.strip().splitlines() or [""])[0]
    sentence, end, _ = line.partition(". ")
    return sentence + end.rstrip()


async def _show(out: Console, client: Client, step: Step) -> dict[str, Any]:
    started_s = time.monotonic()
    result = await client.call_tool(step.tool, dict(step.arguments))
    elapsed_ms = (time.monotonic() - started_s) * 1000
    text = "\n".join(block.text for block in result.content if block.type == "text")
    as_expected = bool(result.is_error) is step.refused
    _print_step(out, step, text, elapsed_ms, as_expected)
    return {"title": step.title, "tool": step.tool, "text": text, "as_expected": as_expected}


def _print_step(out: Console, step: Step, text: str, elapsed_ms: float, as_expected: bool) -> None:
    from rich.text import Text

    verdict = (
        ("[green]refused, as it should be[/]" if step.refused else "[green]ok[/]") if as_expected else "[red]FAILED[/]"
    )
    arguments = ", ".join(f"{key}={value!r}" for key, value in step.arguments.items())
    out.print()
    out.print(f"[bold]{step.title}[/]  {verdict}  {elapsed_ms:.0f} ms")
    out.print(Text(f"{step.tool}({arguments})", "dim"))
    lines = escaped(text).splitlines()
    for line in lines[:_SHOWN_LINES]:
        out.print(Text("  " + line))
    if len(lines) > _SHOWN_LINES:
        out.print(Text(f"  ... {len(lines) - _SHOWN_LINES} more lines", "dim"))


async def _background(out: Console, client: Client) -> dict[str, Any]:
    """Start a command in the background, then read what it printed."""
    command = "for i in 1 2 3; do echo step $i; sleep 0.2; done"
    started = await client.call_tool("Bash", {"command": command, "run_in_background": True})
    facts: dict[str, Any] = (started.meta or {}).get("goat-mcp/facts", {})
    task_id = str(facts.get("task_id", ""))
    step = Step("A command in the background, and its output", "TaskOutput", {"task_id": task_id})
    return await _show(out, client, step)
