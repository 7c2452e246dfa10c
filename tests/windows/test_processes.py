"""Processes of Windows as they are: jobs, `.cmd` files, a server over pipes, and Git's bash if it is installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from goat_mcp.core import platform
from goat_mcp.core.errors import ToolError
from goat_mcp.processes import ProcessGuard
from goat_mcp.processes.bash_options import BashOptions
from goat_mcp.processes.process_guard import guarded_start
from goat_mcp.processes.program import run_program
from goat_mcp.processes.windows_bash import find_git_bash
from goat_mcp.processes.windows_command import start_windows_command

pytestmark = [
    pytest.mark.skipif(platform.SYSTEM != "windows", reason="needs processes and jobs of Windows"),
    pytest.mark.anyio,
]

ROOT = Path(__file__).parents[2]
TOWNS = "mcp__weather__list_towns"
PARENT = (
    "import subprocess, sys, time;"
    "print(subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)']).pid, flush=True);"
    "time.sleep(300)"
)
OWNER = f"""
import subprocess, sys
from goat_mcp.processes.process_guard import ProcessGuard, guarded_start
guard = ProcessGuard()
child = subprocess.Popen([sys.executable, "-c", {PARENT!r}], stdout=subprocess.PIPE, **guarded_start())
guard.watch(child.pid)
print(child.pid, child.stdout.readline().decode(), flush=True)
sys.stdin.read()
"""


def _ends(*pids: int) -> bool:
    alive = [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]
    return not psutil.wait_procs(alive, timeout=10)[1]


def test_a_job_ends_with_the_child_and_its_child() -> None:
    guard = ProcessGuard()
    child = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, **guarded_start())
    guard.watch(child.pid)
    assert child.stdout is not None
    grandchild = int(child.stdout.readline())
    assert guard.jobs is not None
    assert {child.pid, grandchild} <= {one.pid for one in guard.jobs.members(child.pid)}

    guard.forget(child.pid)

    assert child.wait(10) is not None
    assert _ends(grandchild)


def test_nothing_survives_an_owner_that_was_killed() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    )
    assert owner.stdout is not None
    pids = [int(word) for word in owner.stdout.readline().split()]
    assert len(pids) == 2

    owner.kill()

    assert _ends(*pids)


async def test_a_cmd_file_gets_its_arguments_as_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "a b"
    folder.mkdir()
    show = f'@echo off\r\n"{sys.executable}" -c "import json, sys; print(json.dumps(sys.argv[1:]))" %*\r\n'
    (folder / "show.cmd").write_bytes(show.encode())
    given = ["-y", "@x/y@^1.0", "a&calc|b<c>(d)", "x=1,2;3", "", "C:\\end\\", "it's"]
    output = bytearray()

    end = await run_program(
        ["show", *given],
        data=b"",
        directory=tmp_path,
        environment={**os.environ, "PATH": f"{folder};{os.environ['PATH']}"},
        guard=ProcessGuard(),
        on_output=output.extend,
        timeout_s=30,
    )

    assert end.exit_code == 0, end.stderr_tail
    assert json.loads(output) == given


async def test_a_client_over_pipes_lists_and_calls_tools(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "GOAT_MCP_STATE_DIR": str(tmp_path / "state")}
    weather = {"command": sys.executable, "args": [str(ROOT / "examples" / "weather_stdio.py")]}
    upstreams = tmp_path / "upstreams.json"
    upstreams.write_text(json.dumps({"mcpServers": {"weather": weather}}))
    (tmp_path / "ws").mkdir()
    words = ["-m", "goat_mcp", "serve", "--upstreams", str(upstreams), "--mode", "bypassPermissions"]
    server = StdioServerParameters(command=sys.executable, args=words, cwd=tmp_path / "ws", env=environment)

    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        with anyio.fail_after(60):
            await session.initialize()
            called = await session.call_tool("TodoWrite", {"todos": []})
            while not any(one.name == TOWNS for one in (await session.list_tools()).tools):  # noqa: ASYNC110  # as clients do
                await anyio.sleep(0.1)
            towns = await session.call_tool(TOWNS, {})
        children = psutil.Process().children(recursive=True)

    assert not called.is_error
    assert "Aldermoor" in str(towns.content)
    assert children
    assert not psutil.wait_procs(children, timeout=10)[1]


@pytest.fixture
def git_bash() -> str:
    try:
        return find_git_bash("", os.environ, os.path.isfile)
    except ToolError:
        pytest.skip("Git for Windows is not installed")


@pytest.mark.parametrize(
    ("script", "output", "code"),
    [
        ("echo one; echo two >&2; exit 3", "one\ntwo", 3),
        ("cat <<'E'\n$HOME 'x' \"y\"\nE", "$HOME 'x' \"y\"", 0),
        ('cd sub && printf \'%s\' "$(basename "$PWD")"', "sub", 0),
    ],
)
async def test_git_bash_runs_a_script(git_bash: str, tmp_path: Path, script: str, output: str, code: int) -> None:
    root = tmp_path / "ws"
    (root / "sub").mkdir(parents=True)

    command = start_windows_command(
        script,
        bash=git_bash,
        directory=root,
        environment=dict(os.environ),
        guard=ProcessGuard(),
        create_file=_files_in(tmp_path),
        options=BashOptions(),
        stdin=subprocess.DEVNULL,
        streams=None,
    )
    assert await command.wait_gone(30)

    assert command.capture.shown(100).text == output
    assert command.exit_code == code
    assert command.directory == str(root / "sub" if "cd" in script else root)


def _files_in(folder: Path) -> Callable[..., Any]:
    def create(stem: str) -> tuple[Path, int]:
        return folder / stem, os.open(folder / stem, os.O_RDWR | os.O_CREAT)

    return create
