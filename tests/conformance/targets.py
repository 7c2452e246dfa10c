"""What the server scenarios are run against: our fixture itself, and goat-mcp in front of it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import anyio
from mcp import Client
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from tests.deploy.balancers import HAPROXY
from tests.deploy.team import team
from tests.e2e.goat import REPOSITORY, Launch, wait_for_url
from tests.e2e.processes import end
from tests.quick_start import goat_command

# The suite takes any schema that the protocol allows, and looks whether they come as they are.
DIALECT = "mcp"
SETTINGS = ("limits.calls_per_s=0", f"catalog.schema_dialect={DIALECT}")
OPEN = {"naming": "flat", "allow": ["elicitation", "roots", "sampling"]}
"""Its own names, and everything that it may ask."""
READY_WITHIN_S = 90.0
_FIXTURE = [sys.executable, "-m", "tests.conformance.fixture"]
_TOOL = "test_simple_text"


@contextmanager
def direct(folder: Path, *flags: str, server: Sequence[str] = _FIXTURE) -> Generator[str]:
    """The fixture by itself, or another server."""
    with (folder / "fixture.stderr").open("w") as said:
        process = subprocess.Popen(
            [*server, "--http", *flags],
            cwd=REPOSITORY,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
        )
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            end(process)
            assert process.stdout is not None
            process.stdout.close()


@contextmanager
def behind_http(folder: Path) -> Generator[str]:
    """goat-mcp with the fixture as an HTTP upstream."""
    with direct(folder) as url, goat(folder, {"url": url}) as front:
        yield front


@contextmanager
def behind_stdio(folder: Path) -> Generator[str]:
    """goat-mcp with the fixture as a child process."""
    with goat(folder, child()) as front:
        yield front


@contextmanager
def behind_handshake_only(folder: Path) -> Generator[str]:
    """goat-mcp with a child process that knows only the older era: what newer clients see of it is all bridged."""
    with goat(folder, child("--handshake-only")) as front:
        yield front


@contextmanager
def behind_balancer(folder: Path) -> Generator[str]:
    """haproxy in front of three replicas of goat-mcp, with the fixture as an HTTP upstream."""
    with direct(folder) as url, ExitStack() as stack:
        options = _options(folder, {"url": url})
        running = stack.enter_context(team(folder, HAPROXY, *options, needs_token=False, names_workspace=False))
        for replica in running.replicas:
            anyio.run(_until_ready, replica.url)
        yield running.url


def child(*options: str, server: Sequence[str] = _FIXTURE) -> dict[str, Any]:
    command, *arguments = server
    return {"command": command, "args": [*arguments, *options], "env": {"PYTHONPATH": str(REPOSITORY)}}


def _options(folder: Path, entry: Mapping[str, Any]) -> list[str]:
    """Of `serve`, for this upstream; for none, if the entry is empty."""
    upstreams = folder / "upstreams.json"
    servers = {"fixture": {**OPEN, **entry, "start": "eager"}} if entry else {}
    upstreams.write_text(json.dumps({"mcpServers": servers}))
    return ["--upstreams", str(upstreams), *(part for setting in SETTINGS for part in ("--set", setting))]


@contextmanager
def goat(folder: Path, entry: Mapping[str, Any], *settings: str) -> Generator[str]:
    """goat-mcp over HTTP in front of that upstream, once it is there; of none, if the entry is empty."""
    workspace = folder / "workspace"
    workspace.mkdir()
    # No --workspace: the roots that an upstream is told are the client's then.
    command = goat_command("serve", "--http", "127.0.0.1:0", "--no-token")
    command += [*_options(folder, entry), "--mode", "bypassPermissions"]
    command += [part for setting in settings for part in ("--set", setting)]
    process = subprocess.Popen(
        command,
        env=Launch(folder, workspace).environment,
        cwd=workspace,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    said: list[str] = []
    try:
        url = wait_for_url(process, said)
        if entry:
            anyio.run(_until_ready, url)
        yield url
    finally:
        end(process)
        (folder / "goat.stderr").write_text("".join(said))


async def _until_ready(url: str) -> None:
    """The upstream starts beside the requests, for each era on its own; what is tested here is what it offers once it
    is there."""
    for mode in ("legacy", MODERN_PROTOCOL_VERSIONS[-1]):
        async with Client(url, mode=mode, read_timeout_seconds=READY_WITHIN_S) as client:
            await client.call_tool(await _listed(client))


async def _listed(client: Client) -> str:
    """The name of the tool that both fixtures have."""
    ends_at_s = time.monotonic() + READY_WITHIN_S
    while time.monotonic() < ends_at_s:
        for tool in (await client.list_tools()).tools:
            if tool.name.endswith(_TOOL):
                return tool.name
        await anyio.sleep(0.2)
    raise AssertionError(f"goat-mcp did not list the fixture's tools within {READY_WITHIN_S} s")


HANDSHAKE_ONLY = "handshake-only upstream"
TARGETS: Mapping[str, Callable[[Path], AbstractContextManager[str]]] = {
    "direct": direct,
    "HTTP upstream": behind_http,
    "stdio upstream": behind_stdio,
    HANDSHAKE_ONLY: behind_handshake_only,
    "three replicas": behind_balancer,
}
