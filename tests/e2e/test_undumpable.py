"""A command without a sandbox cannot look into the server that runs it, and the server works as before (R-PROC-7)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.commands.sandbox.boxes import needs_bubblewrap
from tests.e2e.conftest import UNASKED, fill
from tests.e2e.goat import REPOSITORY, Launch
from tests.e2e.wire import Wire

pytestmark = [pytest.mark.real_processes, pytest.mark.linux_only("a process hides its memory from its own user")]
NOBODY = 65534
CANARY = "canary-of-the-server"
_START = """
import ctypes, os, sys
user = int(sys.argv[1])
if user:
    os.setgroups([]); os.setgid(user); os.setuid(user)
elif not os.geteuid():
    # With these root sees every process: DAC_OVERRIDE, DAC_READ_SEARCH, SYS_PTRACE, SYS_ADMIN, PERFMON
    for right in (1, 2, 19, 21, 38):
        ctypes.CDLL(None).prctl(24, right, 0, 0, 0)
os.execv(sys.argv[2], sys.argv[2:])
"""
PATH = os.pathsep.join([str(REPOSITORY), *(one for one in sys.path if one.endswith("site-packages"))])
"""With which another Python of the same version finds what this one has."""


def begun_by(user: int, *command: str) -> list[str]:
    return [sys.executable, "-c", _START, str(user), *command]


@cache
def python_of(user: int) -> str:
    """A Python that the user can run and that has goat-mcp; empty if there is none."""
    for python in (sys.executable, "/usr/bin/python3") if user else (sys.executable,):
        tried = subprocess.run(
            begun_by(user, python, "-c", "import goat_mcp.server.run, sys; sys.exit(sys.version_info[:2] < (3, 11))"),
            env={"PYTHONPATH": PATH},
            cwd="/",
            capture_output=True,
        )
        if not tried.returncode:
            return python
    return ""


@dataclass(frozen=True)
class Server:
    wire: Wire
    folder: Path

    def run(self, command: str) -> str:
        return self.wire.text("Bash", {"command": command})


@pytest.fixture(scope="module", params=["an ordinary user", "root without rights over processes"])
def user(request: pytest.FixtureRequest) -> int:
    if request.param != "an ordinary user" or os.geteuid() != 0:
        return 0  # who runs these tests
    if not python_of(NOBODY):
        pytest.skip("an ordinary user can run no Python here that has goat-mcp")
    return NOBODY


@pytest.fixture(scope="module")
def folder(user: int) -> Generator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="goat-mcp-test-"))
    fill(folder / "workspace")
    for path in (folder, *folder.rglob("*")):
        os.chown(path, user or os.geteuid(), user or os.getegid())
    yield folder
    shutil.rmtree(folder)


def served(folder: Path, user: int, *options: str) -> Wire:
    variables = {"HOME": str(folder), "CANARY": CANARY, "PYTHONPATH": PATH}
    launch = Launch(folder, folder / "workspace", (*UNASKED, *options), variables)
    return Wire(begun_by(user, python_of(user), *launch.command[1:]), launch.environment, launch.workspace)


@pytest.fixture(scope="module")
def server(folder: Path, user: int) -> Generator[Server]:
    with served(folder, user, "--set", "sandbox=off") as wire:
        wire.handshake()
        yield Server(wire, folder)


@pytest.mark.parametrize(
    "attempt",
    [
        "tr '\\0' '\\n' < /proc/$PPID/environ",
        "cat /proc/$PPID/task/$PPID/environ",
        "cat /proc/$PPID/task/*/environ",
        "ls -l /proc/$PPID/fd",
        "readlink -v /proc/$PPID/cwd",
        "ls /proc/$PPID/root/",
        "cat /proc/$PPID/maps",
        "cat /proc/$PPID/smaps",
        "cat /proc/$PPID/auxv",
        "cat /proc/$PPID/io",
        "head -c 1 /proc/$PPID/mem",
        "cat /proc/$PPID/syscall",
        "ls /proc/$PPID/map_files",
        "cat /proc/$PPID/fd/0",
    ],
)
def test_f13_21_dumpable_a_command_cannot_look_into_the_server(server: Server, attempt: str) -> None:
    text = server.run(f"tr '\\0' ' ' < /proc/$PPID/cmdline; echo; {{ {attempt}; }} 2>&1; echo status $?")

    assert " serve " in text.splitlines()[0], "this is the server"
    assert CANARY not in text
    assert "status 0" not in text
    assert "Permission denied" in text or "Operation not permitted" in text


def test_f13_21_dumpable_no_variable_is_found_in_any_process(server: Server) -> None:
    text = server.run("grep -lsa canary-of-[t]he-server /proc/[0-9]*/environ; echo looked")

    assert text.strip() == "looked"


def test_the_server_works_as_before(server: Server) -> None:
    wire, notes = server.wire, server.folder / "workspace/notes.md"

    assert "The goat eats at noon." in wire.text("Read", {"file_path": str(notes)})
    assert "greeting.py" in wire.text("Grep", {"pattern": "Hello"})
    assert "notes.md" in wire.text("Glob", {"pattern": "*.md"})
    wire.text("Edit", {"file_path": str(notes), "old_string": "noon", "new_string": "night"})
    assert "night" in notes.read_text()
    assert server.run("cat notes.md | wc -l; echo a > new; cat new").split() == ["3", "a"]


@needs_bubblewrap
def test_the_sandbox_works_as_before(folder: Path, user: int) -> None:
    with served(folder, user, "--set", "sandbox=required") as wire:
        wire.handshake()

        text = wire.text("Bash", {"command": "echo in > made; cat made; : >> /proc/sys/kernel/core_pattern || :"})

    assert text.splitlines()[0] == "in"
    assert "Read-only file system" in text or "Permission denied" in text
    assert (folder / "workspace/made").stat().st_uid == (user or os.geteuid())
