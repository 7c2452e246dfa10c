"""What a sandbox needs in the workspace is gone with the command, however the command or its server ends."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from tests.commands.sandbox.boxes import git, names, needs_bubblewrap
from tests.e2e.conftest import UNASKED, fill
from tests.e2e.goat import Launch
from tests.e2e.processes import descendants, kill_all, mentioning
from tests.e2e.wire import Wire, text_of
from tests.repetitions import times

pytestmark = [pytest.mark.real_processes, pytest.mark.e2e, needs_bubblewrap]

OURS = ["notes.md", "src"]
HELD = {".claude", ".mcp.json", ".vscode", "goat-mcp.yaml"}
GONE_WITHIN_S = times(60, in_full_run=10)
ENDED_WITHIN_S = times(60, in_full_run=3)
COMMAND = "sleep 86313 & sleep 86314"


@pytest.fixture
def boxed(tmp_path: Path) -> Generator[Launch]:
    yield Launch(tmp_path, fill(tmp_path / "workspace"), (*UNASKED, "--set", "sandbox=required"))
    kill_all(mentioning(str(tmp_path)))


def connected(launch: Launch) -> Wire:
    wire = Wire(launch.command, launch.environment, launch.workspace, launch.folder / "stderr")
    wire.handshake()
    return wire


def running(wire: Wire, launch: Launch) -> int:
    """A command in its sandbox; the id of the call."""
    call = wire.start("tools/call", {"name": "Bash", "arguments": {"command": "touch up; " + COMMAND}})
    assert holds(lambda: (launch.workspace / "up").exists()), (launch.folder / "stderr").read_text()
    assert set(names(launch.workspace)) >= HELD
    (launch.workspace / "up").unlink()
    return call


def holds(condition: Callable[[], bool], within_s: float = GONE_WITHIN_S) -> bool:
    ends_at_s = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > ends_at_s:
            return False
        time.sleep(0.02)
    return True


def test_a_timeout_answers_when_the_workspace_is_in_order(boxed: Launch) -> None:
    # R-PROC-3, 6
    with connected(boxed) as wire:
        result = wire.call("Bash", {"command": COMMAND, "timeout": 1500})

        assert "[E_TIMEOUT]" in text_of(result)
        assert names(boxed.workspace) == OURS


def test_an_ended_task_leaves_nothing(boxed: Launch) -> None:
    with connected(boxed) as wire:
        started = wire.call("Bash", {"command": "touch up; " + COMMAND, "run_in_background": True})
        assert holds(lambda: (boxed.workspace / "up").exists())
        (boxed.workspace / "up").unlink()
        git(boxed.workspace, "init", "-q")
        status = git(boxed.workspace, "status", "--porcelain", "--ignored")
        assert set(names(boxed.workspace)) >= HELD

        wire.call("TaskStop", {"task_id": text_of(started).split("Task started: ")[1].split()[0]})

        assert names(boxed.workspace) == [".git", *OURS]
        # Nor was anything of it to be seen in between.
        assert status.split() == ["??", "notes.md", "??", "src/"]


def test_a_cancelled_call_leaves_nothing(boxed: Launch) -> None:
    with connected(boxed) as wire:
        call = running(wire, boxed)

        wire.notify("notifications/cancelled", {"requestId": call, "reason": "enough"})

        # R-PROC-5: TERM ends these at once; what ignores it has 2 s.
        assert holds(lambda: names(boxed.workspace) == OURS, ENDED_WITHIN_S)
        assert holds(
            lambda: not any("sleep 8631" in one.command for one in descendants(wire.process.pid)), ENDED_WITHIN_S
        )


@pytest.mark.parametrize("ending", ["its client goes", "SIGTERM", "SIGINT", "SIGKILL"])
def test_a_server_that_ends_during_a_command_leaves_nothing(boxed: Launch, ending: str) -> None:
    with connected(boxed) as wire:
        running(wire, boxed)

        if ending == "its client goes":
            assert wire.process.stdin is not None
            wire.process.stdin.close()
        else:
            wire.process.send_signal(signal.Signals[ending])
        wire.process.wait(GONE_WITHIN_S)

        assert holds(lambda: names(boxed.workspace) == OURS), names(boxed.workspace)
        assert holds(lambda: list((boxed.folder / "state/sandbox").glob("*.json")) == [])


def test_where_all_were_killed_the_next_server_starts_and_takes_it_away(boxed: Launch) -> None:
    with connected(boxed) as wire:
        running(wire, boxed)
        (guard,) = (one for one in descendants(wire.process.pid) if one.command.startswith("/bin/sh -c"))
        os.kill(guard.pid, signal.SIGKILL)  # it would put things right
        wire.process.kill()
        wire.process.wait(GONE_WITHIN_S)
    assert set(names(boxed.workspace)) >= HELD

    with connected(boxed) as wire:
        why = subprocess.run(
            [*boxed.command[:3], "trust", str(boxed.workspace)],
            env=boxed.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert "there is no" in why.stderr
        assert wire.text("Bash", {"command": "ls -A"}) == ".claude\n.mcp.json\n.vscode\ngoat-mcp.yaml\nnotes.md\nsrc"
        assert names(boxed.workspace) == OURS
