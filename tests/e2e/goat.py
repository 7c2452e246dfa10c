"""How the end-to-end tests start goat-mcp: a real process, its own state directory, nothing of the user's settings."""

from __future__ import annotations

import os
import queue
import subprocess
import threading
import time
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import Tool

from tests.e2e.processes import end
from tests.quick_start import goat_command

START_TIMEOUT_S = 90.0
EXIT_TIMEOUT_S = 30.0
CALL_TIMEOUT_S = 60.0
LISTED_WITHIN_S = 60.0
TOKEN = "example-token-of-the-end-to-end-tests-0123456789"
REPOSITORY = Path(__file__).parents[2]


@dataclass(frozen=True)
class Launch:
    """One way to start `goat-mcp serve`. `folder` holds everything that run leaves behind."""

    folder: Path
    workspace: Path
    options: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    names_workspace: bool = True
    """Otherwise it is only started there."""

    @property
    def command(self) -> list[str]:
        workspace = ("--workspace", str(self.workspace)) if self.names_workspace else ()
        return goat_command("serve", *workspace, *self.options)

    @property
    def environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("GOAT_MCP_")}
        return {
            **inherited,
            "GOAT_MCP_STATE_DIR": str(self.folder / "state"),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "GOAT_MCP_RESIDENT": "0",  # a process of its own, unless a test says so
            "GOAT_MCP_APPROVAL__WAIT_S": "0",  # nobody answers here, unless a test says so
            **self.variables,
        }

    def stdio(self) -> StdioServerParameters:
        command, *arguments = self.command
        return StdioServerParameters(command=command, args=arguments, env=self.environment, cwd=self.workspace)


@dataclass(frozen=True)
class HttpGoat:
    """A goat-mcp that listens."""

    url: str
    process: subprocess.Popen[str]
    said: list[str] = field(default_factory=list[str])
    """The lines of its stderr so far."""

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {TOKEN}"}


@contextmanager
def http_goat(launch: Launch, *, needs_token: bool = True) -> Generator[HttpGoat]:
    """Start goat-mcp on a free port of this machine; it is told to end afterwards."""
    token_file = launch.folder / "token"
    token_file.parent.mkdir(parents=True, exist_ok=True)
    token_file.write_text(TOKEN)
    token_file.chmod(0o600)
    command = [*launch.command, "--http", "127.0.0.1:0"]
    command += ["--token-file", str(token_file)] if needs_token else ["--no-token"]
    process = subprocess.Popen(
        command,
        env=launch.environment,
        cwd=launch.workspace,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        said: list[str] = []
        yield HttpGoat(wait_for_url(process, said), process, said)
    finally:
        end(process)


def wait_for_url(process: subprocess.Popen[str], said: list[str] | None = None) -> str:
    """The URL in the first stderr line that has one; later lines are read on and kept in `said`."""
    lines = queue.Queue[str | None]()
    kept = said if said is not None else []

    def read() -> None:
        assert process.stderr is not None
        for line in process.stderr:
            kept.append(line)
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    seen: list[str] = []
    ends_at_s = time.monotonic() + START_TIMEOUT_S
    while (line := lines.get(timeout=max(0.01, ends_at_s - time.monotonic()))) is not None:
        seen.append(line)
        if "http://" in line:
            return "http://" + line.split("http://")[1].strip()
    raise AssertionError(f"ended with {process.wait(EXIT_TIMEOUT_S)} before it listened:\n{''.join(seen)}")


async def listed_with(client: Client, *wanted: str) -> list[Tool]:
    """The tools, once those wanted are among them: a slow server's miss the first list (LIF-2)."""
    with anyio.fail_after(LISTED_WITHIN_S):
        while True:
            tools = (await client.list_tools()).tools
            if set(wanted) <= {tool.name for tool in tools}:
                return tools
            await anyio.sleep(0.1)


@asynccontextmanager
async def connected(
    target: Launch | HttpGoat | StdioServerParameters, mode: str, **client: Any
) -> AsyncGenerator[Client]:
    """The Python SDK's client, connected. `mode` is legacy, auto or 2026-07-28."""
    client.setdefault("read_timeout_seconds", CALL_TIMEOUT_S)
    if isinstance(target, HttpGoat):
        async with httpx2.AsyncClient(headers=target.headers, timeout=CALL_TIMEOUT_S) as http:
            transport = streamable_http_client(target.url, http_client=http)
            async with Client(transport, mode=mode, **client) as session:
                yield session
        return
    parameters = target.stdio() if isinstance(target, Launch) else target
    async with Client(parameters, mode=mode, **client) as session:
        yield session
