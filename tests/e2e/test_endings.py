"""However it ends - its client killed, itself killed, asked to stop - goat-mcp leaves no process behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import killed_client
from tests.e2e.conftest import fill, ours, upstream_file
from tests.e2e.goat import Launch, http_goat
from tests.e2e.killed_client import MOMENTS, PIPE_HELD
from tests.e2e.processes import Seen, alive, descendants, kill_all, left_after, mentioning
from tests.e2e.wire import Wire
from tests.repetitions import times

pytestmark = [
    pytest.mark.real_processes,
    pytest.mark.e2e,
    pytest.mark.chaos,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to see which processes are left"),
]

KILLS = times(4, in_full_run=1000)
AT_A_TIME = 4
GONE_WITHIN_S = times(60, in_full_run=5)
"""The five seconds of R-STOP-1 are held to at night, when nothing else runs. In every run a busy machine has its time,
and what does not end by itself still shows: the calls that are under way would take ten minutes."""
START_S = 5.0
"""A process that is still starting notices once it has started, which takes a busy machine some seconds."""
GUARD_GONE_WITHIN_S = times(60, in_full_run=4)
"""The guard outlives goat-mcp by a moment: it looks once more for what was left, then ends."""


def launch_in(folder: Path) -> Launch:
    """goat-mcp with an upstream, both of which name `folder` in what can be seen of their processes."""
    workspace = fill(folder / "workspace")
    file = upstream_file(folder / "upstreams.json", plain=ours("plain", "healthy", str(folder)))
    return Launch(folder, workspace, ("--upstreams", str(file)))


@pytest.fixture(autouse=True)
def nothing_stays(tmp_path: Path) -> Generator[None]:
    """A failed test must not leave its processes to the next one."""
    yield
    kill_all(mentioning(str(tmp_path)))


# LIF-8
def test_many_killed_clients_leave_no_process(tmp_path: Path) -> None:
    moments = [MOMENTS[number % len(MOMENTS)] for number in range(KILLS)]

    folders = [tmp_path / f"client-{number:04}" for number in range(KILLS)]
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        outcomes = list(pool.map(killed, folders, moments))

    assert [(moment, left) for moment, (left, _) in zip(moments, outcomes, strict=True) if left] == []


def test_a_killed_client_is_noticed_though_another_process_holds_the_pipe(tmp_path: Path) -> None:
    left, said = killed(tmp_path / "client", PIPE_HELD)

    os.kill(int(said), signal.SIGKILL)
    assert left == []


def killed(folder: Path, moment: str) -> tuple[list[Seen], str]:
    """Start a client, kill it at that moment; what of it still lives, and which process holds the pipe."""
    launch = launch_in(folder)
    job = {
        "command": launch.command,
        "environment": launch.environment,
        "workspace": str(launch.workspace),
        "moment": moment,
    }
    client = subprocess.Popen(
        [sys.executable, killed_client.__file__, json.dumps(job)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert client.stdout is not None
        said = client.stdout.readline()
        assert said.startswith("ready"), (moment, said)
        family = descendants(client.pid)
        assert family, "goat-mcp was not running"
        client.kill()
    finally:
        client.kill()
        client.wait()
    within_s = GONE_WITHIN_S + (START_S if moment == "starting" else 0.0)
    holder = said.removeprefix("ready").strip()
    return left_after(family, f"{folder}/", within_s, spared=int(holder or 0)), holder


def busy(wire: Wire, workspace: Path) -> None:
    """A command, an upstream's call and a background task that would each take minutes."""
    wire.handshake()
    wire.request("tools/list")
    wire.text("mcp__plain__pid", {})
    wire.start("tools/call", {"name": "mcp__plain__nap", "arguments": {"seconds": 600}})
    wire.text("Bash", {"command": "trap '' TERM; while :; do sleep 600; done", "run_in_background": True})
    wire.start("tools/call", {"name": "Bash", "arguments": {"command": "touch running; sleep 600"}})
    killed_client.wait_for(workspace / "running")


@pytest.mark.parametrize("ending", ["SIGTERM", "SIGINT", "EOF"])
def test_it_ends_within_five_seconds_during_calls(tmp_path: Path, ending: str) -> None:
    launch = launch_in(tmp_path / "goat")
    with Wire(launch.command, launch.environment, launch.workspace) as wire:
        busy(wire, launch.workspace)
        family = descendants(wire.process.pid)

        if ending == "EOF":
            assert wire.process.stdin is not None
            wire.process.stdin.close()
        else:
            wire.process.send_signal(signal.Signals[ending])
        code = wire.process.wait(GONE_WITHIN_S)
        left = left_after(family, f"{launch.folder}/", GUARD_GONE_WITHIN_S)

    assert len(family) >= 3
    assert code == 0
    assert left == []
    assert cancelled_calls(launch) == ["Bash", "mcp__plain__nap"]  # R-STOP-1: the record is complete


def cancelled_calls(launch: Launch) -> list[str]:
    """The tools whose calls are on record as cancelled. Every call that was let run must have an outcome there."""
    lines = (launch.folder / "state" / "audit.jsonl").read_text().splitlines()
    records: list[dict[str, Any]] = [json.loads(line) for line in lines]
    decided = {record["call_id"] for record in records if record["event"] == "decision"}
    ended = {record["call_id"]: record for record in records if record["event"] == "outcome"}
    assert decided - set(ended) == set()
    verify = [sys.executable, "-m", "goat_mcp", "audit", "verify"]
    checked = subprocess.run(verify, env=launch.environment, capture_output=True, text=True, timeout=60)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    return sorted(record["tool"] for record in ended.values() if record["error_code"] == "E_CANCELLED")


def test_it_ends_at_once_when_idle(tmp_path: Path) -> None:
    launch = launch_in(tmp_path / "goat")
    with Wire(launch.command, launch.environment, launch.workspace) as wire:
        wire.handshake()
        assert wire.process.stdin is not None
        wire.process.stdin.close()

        code = wire.process.wait(times(60, in_full_run=2))

    assert code == 0


def test_an_http_server_ends_within_five_seconds_during_a_call(tmp_path: Path) -> None:
    import httpx2

    from tests.e2e.test_http_guard import GOOD, PING

    launch = launch_in(tmp_path / "goat")
    launch = Launch(launch.folder, launch.workspace, (*launch.options, "--mode", "bypassPermissions"))
    call = {"name": "Bash", "arguments": {"command": "touch running; sleep 600"}, "_meta": PING["params"]["_meta"]}
    body = {**PING, "method": "tools/call", "params": call}
    headers = {**GOOD, "Mcp-Method": "tools/call", "Mcp-Name": "Bash"}
    with http_goat(launch) as goat, ThreadPoolExecutor(1) as pool:
        request = pool.submit(lambda: httpx2.post(goat.url, json=body, headers=headers, timeout=GONE_WITHIN_S + 60))
        killed_client.wait_for(launch.workspace / "running")
        family = descendants(goat.process.pid)

        goat.process.terminate()
        code = goat.process.wait(GONE_WITHIN_S)
        left = left_after(family, f"{launch.folder}/", GUARD_GONE_WITHIN_S)
        request.exception(60)

    assert (code, left) == (0, [])


# LIF-8
def test_goat_itself_killed_leaves_no_process(tmp_path: Path) -> None:
    launch = launch_in(tmp_path / "goat")
    with Wire(launch.command, launch.environment, launch.workspace) as wire:
        busy(wire, launch.workspace)
        family = descendants(wire.process.pid)

        wire.process.kill()
        wire.process.wait(60)
        left = left_after(family, f"{launch.folder}/", GONE_WITHIN_S)

    assert len(family) >= 3
    assert alive(left) == []
