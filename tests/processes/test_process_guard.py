"""The guard ends process groups after its owner died, and touches nothing it was told to forget."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from goat_mcp.processes.process_guard import MARKER_VARIABLE, ProcessGuard
from tests.processes.processes import OTHER, WITHOUT_LINUX, running, wait_until
from tests.processes.test_running_command import unique_sleep

pytestmark = pytest.mark.linux_only("looks at /proc")

OWNER = """
import os, signal, subprocess, sys, threading
from goat_mcp.processes.process_guard import ProcessGuard, MARKER_VARIABLE
guard = ProcessGuard()
guard.start()
def spawn(command, watched):
    child = subprocess.Popen(["bash", "-c", command], start_new_session=True, stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             env={"PATH": os.environ["PATH"], MARKER_VARIABLE: guard.marker("c")})
    if watched:
        guard.watch(child.pid)
    print(child.pid, flush=True)
thread = threading.Thread(target=spawn, args=("trap '' TERM; sleep 300 & wait; sleep 300", True))
thread.start(); thread.join()
spawn("setsid sleep 300 & exec sleep 300", False)
input()
"""


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def marked(value: str) -> list[int]:
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if f"{MARKER_VARIABLE}={value}".encode() in (entry / "environ").read_bytes() and alive(int(entry.name)):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def spawn_sleeper(guard: ProcessGuard) -> subprocess.Popen[bytes]:
    child = subprocess.Popen(["sleep", "300"], start_new_session=True)
    guard.watch(child.pid)
    return child


def owner_of(program: str, kernel: str, *arguments: str) -> subprocess.Popen[bytes]:
    program = WITHOUT_LINUX + program if kernel == OTHER else program
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def test_nothing_survives_an_owner_that_was_killed_whatever_thread_or_session_started_it(kernel: str) -> None:
    owner = owner_of(OWNER, kernel)
    assert owner.stdout is not None
    pids = [int(owner.stdout.readline()) for _ in range(2)]
    environment = Path(f"/proc/{pids[0]}/environ").read_bytes().split(b"\0")
    marker = next(one for one in environment if one.startswith(MARKER_VARIABLE.encode())).decode().split("=")[1]
    assert wait_until(lambda: len(marked(marker)) >= 4, 5)

    owner.send_signal(signal.SIGKILL)
    owner.wait(60)

    assert wait_until(lambda: not marked(marker) and not any(alive(pid) for pid in pids), 3)


SERVER = """
import asyncio, os, sys
from goat_mcp.processes.process_guard import ProcessGuard
from goat_mcp.processes.command_start import start_command
if sys.argv[2] == "hidden":
    from goat_mcp.processes import process_tree
    process_tree.environment_contains = lambda pid, text: False

class Guard(ProcessGuard):
    def watch(self, group, **more):
        super().watch(group, **more)
        print(group, flush=True)

async def serve():
    command = start_command(sys.argv[1], bash="/bin/bash", directory="/", environment={"PATH": os.environ["PATH"]},
                            guard=Guard(), create_file=lambda stem: None)
    await command.wait_gone(None)
asyncio.run(serve())
"""


@pytest.mark.parametrize(
    ("script", "groups"),
    [
        ("env -i setsid sleep {} & trap '' TERM; setsid -w bash -c \"trap '' TERM; env -i sleep {}; sleep 600\"", 1),
        ("(env -i setsid sleep {} & sleep {short}) & (setsid sleep {} & sleep {short}); kill $$", 3),
    ],
    ids=["its parent lives", "its parent was seen"],
)
def test_what_left_its_session_without_a_mark_is_ended_too(script: str, groups: int) -> None:
    sleeps, short = (unique_sleep(), unique_sleep()), f"2.{unique_sleep()}"
    owner = owner_of(SERVER, OTHER, script.format(*sleeps, short=short), "hidden")
    assert owner.stdout is not None
    for _ in range(groups):
        assert owner.stdout.readline().strip().isdigit()
    assert wait_until(lambda: all(running("sleep", sleep) for sleep in sleeps))
    if groups > 1:
        assert wait_until(lambda: not running("sleep", short))

    owner.kill()
    owner.wait(60)

    assert wait_until(lambda: not any(running("sleep", sleep) for sleep in sleeps), 3)


@pytest.mark.usefixtures("kernel")
def test_a_forgotten_group_is_left_alone_when_the_guard_closes() -> None:
    guard = ProcessGuard()
    kept, ended = spawn_sleeper(guard), spawn_sleeper(guard)

    guard.forget(kept.pid)
    guard.close()

    try:
        assert ended.wait(60) == -signal.SIGTERM
        assert kept.poll() is None
    finally:
        kept.kill()
        kept.wait(60)


@pytest.mark.usefixtures("kernel")
def test_a_guard_that_was_killed_is_replaced_and_knows_the_groups_of_before() -> None:
    guard = ProcessGuard()
    before = children_named_sh()
    first = spawn_sleeper(guard)
    (guard_pid,) = children_named_sh() - before
    os.kill(guard_pid, signal.SIGKILL)
    assert wait_until(lambda: not alive(guard_pid), 5)

    second = spawn_sleeper(guard)
    guard.close()

    assert (first.wait(60), second.wait(60)) == (-signal.SIGTERM, -signal.SIGTERM)


@pytest.mark.usefixtures("kernel")
def test_the_guard_leaves_by_itself_when_there_is_nothing_to_end() -> None:
    guard = ProcessGuard()
    before = children_named_sh()
    guard.start()
    (guard_pid,) = children_named_sh() - before

    guard.close()

    assert wait_until(lambda: not alive(guard_pid), 3)


def children_named_sh() -> set[int]:
    found: set[int] = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                name, rest = (entry / "stat").read_text().rsplit(")", 1)
            except OSError:
                continue
            if int(rest.split()[1]) == os.getpid() and "(sh" in name and rest.split()[0] != "Z":
                found.add(int(entry.name))
    return found


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("killed", [False, True], ids=["first guard", "replaced guard"])
def test_the_last_command_runs_when_nothing_is_left_of_the_others(tmp_path: Path, killed: bool) -> None:
    said = tmp_path / "said"
    guard = ProcessGuard()
    guards = children_named_sh()
    child = spawn_sleeper(guard)
    (guard_pid,) = children_named_sh() - guards
    script = f"kill -0 {child.pid} 2>/dev/null && printf alive > '{said}'\nprintf '%s' \"$1\" >> '{said}'"
    guard.run_at_the_end(["/bin/sh", "-c", script, "sh", "it's \\n \\0 100% $HOME\n\té"])
    if killed:
        os.kill(guard_pid, signal.SIGKILL)
        assert wait_until(lambda: not alive(guard_pid), 5)
        guard.start()

    guard.close()

    child.wait(60)
    text = "it's \\n \\0 100% $HOME\n\té"
    assert wait_until(lambda: said.exists() and said.read_text() == text, 5), said.read_text()
