"""What the suite's scenarios for skills are run against: a server of ours that has skills, goat-mcp in front of it over
both transports, and goat-mcp with skills of the user's own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import anyio
from mcp import Client

from tests.conformance.fixture.skills import FILES
from tests.e2e.goat import REPOSITORY, Launch, wait_for_url
from tests.e2e.processes import end
from tests.quick_start import goat_command

SKILL_SCENARIOS = ("sep-2640-skills-directory", "sep-2640-skills-enumeration", "sep-2640-skills-manifest")
SKILL_CLIENT_SCENARIOS = (
    "sep-2640-client-no-prefetch",
    "sep-2640-client-verify-digest",
    "sep-2640-client-verify-size",
    "sep-2640-client-verify-frontmatter",
)
_FIXTURE = [sys.executable, "-m", "tests.conformance.fixture.skills"]
_TOOL = "mcp__fixture__test_simple_text"
READY_WITHIN_S = 90.0


@contextmanager
def _direct(folder: Path) -> Generator[str]:
    with (folder / "fixture.stderr").open("w") as said:
        process = subprocess.Popen(
            [*_FIXTURE, "--http"],
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
def _own(folder: Path) -> Generator[str]:
    """Two of the fixture's skills, as folders of the user's."""
    for uri, text in FILES.items():
        name = uri.removeprefix("skill://")
        if not name.startswith("acme/"):
            file = folder / "skills" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode())
    with _goat(folder, {}, f'skills=["{folder}/skills"]') as front:
        yield front


@contextmanager
def _relayed_http(folder: Path) -> Generator[str]:
    with _direct(folder) as url, _goat(folder, {"url": url}) as front:
        yield front


@contextmanager
def _relayed_stdio(folder: Path) -> Generator[str]:
    with _goat(folder, _child()) as front:
        yield front


@contextmanager
def _goat(folder: Path, entry: Mapping[str, Any], *settings: str) -> Generator[str]:
    """goat-mcp over HTTP in front of this upstream, whose names are qualified; of none, if the entry is empty."""
    workspace, upstreams = folder / "workspace", folder / "upstreams.json"
    workspace.mkdir()
    upstreams.write_text(json.dumps({"mcpServers": {"fixture": {**entry, "start": "eager"}} if entry else {}}))
    command = goat_command("serve", "--http", "127.0.0.1:0", "--no-token", "--upstreams", str(upstreams))
    command += [part for setting in ("limits.calls_per_s=0", *settings) for part in ("--set", setting)]
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
            anyio.run(_until_listed, url)
        yield url
    finally:
        end(process)
        (folder / "goat.stderr").write_text("".join(said))


async def _until_listed(url: str) -> None:
    ends_at_s = time.monotonic() + READY_WITHIN_S
    async with Client(url, mode="legacy", read_timeout_seconds=READY_WITHIN_S) as client:
        while time.monotonic() < ends_at_s:
            if any(tool.name == _TOOL for tool in (await client.list_tools()).tools):
                return
            await anyio.sleep(0.2)
    raise AssertionError(f"goat-mcp did not list the fixture's tools within {READY_WITHIN_S} s")


def _child() -> dict[str, Any]:
    command, *arguments = _FIXTURE
    return {"command": command, "args": arguments, "env": {"PYTHONPATH": str(REPOSITORY)}}


SKILL_TARGETS: Mapping[str, Callable[[Path], AbstractContextManager[str]]] = {
    "direct": _direct,
    "skills of goat-mcp": _own,
    "HTTP upstream": _relayed_http,
    "stdio upstream": _relayed_stdio,
}
