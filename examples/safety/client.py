"""A client that goat-mcp asks about, hinders and keeps a record of, and what you see of it.

    python examples/safety/client.py [FOLDER]

FOLDER, which is a new one unless you name it, gets a copy of `project/`, the settings, the server's state and a
secret that is none of the project's. You are played by this program: it answers the forms, and runs what follows `$`.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.context import ClientRequestContext

HERE = Path(__file__).resolve().parent
WHY = ("goat-mcp", "why", "--config", "../goat-mcp.yaml")


def say(text: str) -> None:
    print(text, flush=True)


class Run:
    """One folder, the server that works in it, and the person in front of the client."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.project = folder / "project"
        self.answer = ""
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("GOAT_MCP_")},
            "GOAT_MCP_STATE_DIR": str(folder / "state"),
            "GOAT_MCP_RESIDENT": "0",
            "XDG_CONFIG_HOME": str(folder / "config"),
            "LC_ALL": "C.UTF-8",
            "PATH": os.pathsep.join([str(HERE / "hooks"), os.environ.get("PATH", os.defpath)]),
        }

    def lay_out(self) -> None:
        shutil.copytree(HERE / "project", self.project)
        (self.project / "notes.txt").symlink_to("secrets/key.txt")
        (self.folder / "private.txt").write_text("not a part of the project\n")
        shutil.copy(HERE / "goat-mcp.yaml", self.folder)
        weather = {"command": sys.executable, "args": [str(HERE.parent / "weather_stdio.py")]}
        (self.folder / "servers.json").write_text(json.dumps({"mcpServers": {"weather": weather}}))
        subprocess.run(["git", "init", "--quiet", str(self.project)], check=True)

    @asynccontextmanager
    async def client(self, *options: str) -> AsyncGenerator[Client]:
        """A client of a goat-mcp that serves the project."""
        words = ["--config", str(self.folder / "goat-mcp.yaml"), "--workspace", str(self.project), *options]
        server = StdioServerParameters(
            command=sys.executable, args=["-m", "goat_mcp", "serve", *words], env=self.environment
        )
        async with Client(server, elicitation_callback=self._person) as client:
            yield client

    async def _person(self, context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        """Show the form, and choose what begins with `answer`."""
        assert isinstance(params, types.ElicitRequestFormParams)
        name, field = "decision", params.requested_schema["properties"]["decision"]
        (chosen,) = (choice for choice in field["oneOf"] if choice["title"].startswith(self.answer))
        self._show(params.message, "  | ")
        for choice in field["oneOf"]:
            self._show(f"({'x' if choice is chosen else ' '}) {choice['title']}", "  | ")
        return types.ElicitResult(action="accept", content={name: chosen["const"]})

    async def call(self, client: Client, tool: str, *, you: str = "(not asked)", **arguments: Any) -> None:
        """A call of the model's. `you` is how your answer begins, where you are asked."""
        self.answer = you
        say(f"\n{tool}({', '.join(f'{name}={value!r}' for name, value in arguments.items())})")
        result = await client.call_tool(tool, arguments)
        self._show("\n".join(block.text for block in result.content if isinstance(block, types.TextContent)), "  ")
        sandbox = (result.meta or {}).get("goat-mcp/facts", {}).get("sandbox", "off")
        if sandbox != "off":
            say(f"  [sandbox: {sandbox}]")

    def command(self, *words: str) -> None:
        """A command of yours, in the project."""
        say(f"\n$ {shlex.join(words)}")
        argv = [sys.executable, "-m", "goat_mcp", *words[1:]] if words[0] == "goat-mcp" else words
        done = subprocess.run(argv, cwd=self.project, env=self.environment, capture_output=True, text=True)
        self._show((done.stdout + done.stderr).rstrip(), "  ")
        if done.returncode:
            say(f"  [exit status {done.returncode}]")

    def _show(self, text: str, margin: str) -> None:
        say("\n".join(margin + line for line in text.replace(str(self.folder), "/FOLDER").splitlines()))


async def once(run: Run, client: Client) -> None:
    edit = {"file_path": "@/prices.py", "old_string": "LEMON = 0.80", "new_string": "LEMON = 0.90"}
    await run.call(client, "Read", file_path="@/prices.py")
    await run.call(client, "Edit", **edit, you="Allow once")
    await run.call(client, "Edit", **edit, you="Deny")


async def remembered(run: Run, client: Client) -> None:
    await run.call(client, "Bash", command="sh check.sh", you="Always allow")
    await run.call(client, "Bash", command="sh check.sh")
    run.command(*WHY, "Bash", "command=sh check.sh")
    run.command(*WHY, "Bash", "command=sh check.sh; sh other.sh")


async def rewritten(run: Run, client: Client) -> None:
    await run.call(client, "Bash", command="git clean -d prices.py")
    await run.call(client, "Bash", command="make install")


async def upstream(run: Run, client: Client) -> None:
    await run.call(client, "mcp__weather__current_weather", town="Dunmere")
    await run.call(client, "mcp__weather__current_weather", town="Coldharbour")
    run.command(*WHY, "mcp__weather__current_weather", "town=Coldharbour")


async def hidden(run: Run, client: Client) -> None:
    await run.call(client, "Read", file_path="@/secrets/key.txt")
    await run.call(client, "Read", file_path="@/notes.txt")
    await run.call(client, "Grep", pattern="EXAMPLE")


def recorded(run: Run) -> None:
    run.command("goat-mcp", "audit", "show", "--tool", "Bash")
    run.command("goat-mcp", "audit", "verify")
    text = (run.folder / "state" / "audit.jsonl").read_text()
    (run.folder / "copy.jsonl").write_text(text.replace('"decision":"deny"', '"decision":"dent"', 1))
    run.command("goat-mcp", "audit", "verify", "--file", "../copy.jsonl")


def undone(run: Run) -> None:
    prices = run.project / "prices.py"
    edited = prices.read_text()
    prices.write_text(edited + "GOAT = 90.00\n")
    run.command("goat-mcp", "undo", "--list")
    run.command("goat-mcp", "undo")
    prices.write_text(edited)
    run.command("goat-mcp", "undo")
    run.command("grep", "LEMON", "prices.py")


async def sandboxed(run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        async with run.client("--set", "sandbox=required", "--allowed-tool", "Bash") as client:
            await run.call(client, "Bash", command="cat ../private.txt")
            await run.call(client, "Bash", command="echo changed > ../private.txt")
            await run.call(client, "Bash", command=f"echo hello > /dev/tcp/127.0.0.1/{listening.getsockname()[1]}")
    run.command("cat", "../private.txt")


async def main(run: Run) -> None:
    run.lay_out()
    async with run.client("--set", "sandbox=off") as client:
        say("1. An edit is asked about, and once is once.")
        await once(run, client)
        say("\n2. A rule is remembered.")
        await remembered(run, client)
        say("\n3. A hook rewrites commands, and what it made of them is decided on.")
        await rewritten(run, client)
        say("\n4. A rule about an argument of another server's tool.")
        await upstream(run, client)
        say("\n5. A file that cannot be read.")
        await hidden(run, client)
    say("\n6. The record of calls.")
    recorded(run)
    say("\n7. The edit is undone.")
    undone(run)
    say("\n8. Commands in a sandbox.")
    await sandboxed(run)


if __name__ == "__main__":
    anyio.run(main, Run(Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()).resolve()))
