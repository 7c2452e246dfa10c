"""Many sessions of one resident process, killed at random points: each has its own canaries and nobody else's."""

from __future__ import annotations

import random
import re
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path

import psutil
import pytest

from tests.cli.resident.own_home import RESIDENT, Home, is_alive, status, wait_until
from tests.e2e.processes import left_after
from tests.e2e.wire import Wire
from tests.repetitions import times

pytestmark = [pytest.mark.e2e, pytest.mark.real_processes, pytest.mark.chaos]

SESSIONS = times(40, in_full_run=1000)
AT_ONCE = 3
_CANARY = re.compile(rb"canary-\d{6}-\d{4}")
_MAX_GROWTH = 4 << 20
_ENDS = ("launcher killed", "launcher terminated", "interrupted", "input closed", "session killed")
_MOMENTS = ("starting", "listed", "running a command")


@dataclass
class Tally:
    """What the sessions were."""

    forks: int = 0
    scanned: int = 0
    problems: list[str] = field(default_factory=list[str])


def _canary(number: int) -> str:
    return f"canary-{number * 7919 % 1000000:06}-{number:04}"


def _session(one: Home, number: int, tally: Tally) -> None:
    chance = random.Random(number)  # the same points in each run
    canary = _canary(number)
    workspace = one.folder / str(number) / canary  # a session may list what lies beside its workspace, or in the home
    workspace.mkdir(parents=True)
    umask, files = f"{number % 8:02}7", 300 + number % 100
    words = [*one.python, "-m", "goat_mcp", "serve"]
    command = ["sh", "-c", f'umask {umask}; ulimit -S -n {files}; exec "$@"', "-", *words]
    environment = {
        **one.environment,
        # The state of a user is shared by design, and names workspaces.
        "GOAT_MCP_STATE_DIR": str(one.folder / "state" / canary),
        "PATH": f"{one.environment['PATH']}:/{canary}",
        "GOAT_MCP_PERMISSIONS__DENY": f'["Bash(echo {canary}*)"]',
        "GOAT_MCP_OUTPUT__MAX_CHARS": str(20_000 + number),
    }
    moment = chance.choice(_MOMENTS)
    with Wire(command, environment, workspace) as wire:
        if moment == "starting":
            with suppress(OSError):
                wire.start("initialize", {})
            time.sleep(chance.random() / 10)
            _end(wire, None, chance, tally)
            return
        wire.handshake()
        found = status(wire)
        is_fork = found["how_started"] == RESIDENT
        tally.forks += is_fork
        said = wire.text("Bash", {"command": 'echo "${PATH##*/}|$PWD|$(umask)|$(ulimit -S -n)"; env'})
        first, *variables = said.strip().splitlines()
        wanted = f"{canary}|{workspace}|{int(umask, 8):04o}|{files}"
        if first != wanted or {other for other in _CANARY.findall(said.encode()) if other.decode() != canary}:
            tally.problems.append(f"{first} is not {wanted}, or others in {variables}")
        if not wire.call("Bash", {"command": f"echo {canary}"}).get("isError"):
            tally.problems.append(f"{number}: its own rule does not hold")
        if wire.call("Bash", {"command": f"echo {_canary(number + 1)[:-1]}"}).get("isError"):
            tally.problems.append(f"{number}: the rule of another holds")
        if is_fork and number % 4 == 0:
            _check_memory(found["pid"], canary, tally)
        if moment == "running a command":
            wire.start("tools/call", {"name": "Bash", "arguments": {"command": "sleep 333"}})
            time.sleep(chance.random() / 5)
        _end(wire, found["pid"], chance, tally)


def _check_memory(pid: int, canary: str, tally: Tally) -> None:
    try:
        found = _canaries_in(pid)
    except PermissionError:  # only root reads it
        return
    tally.scanned += 1
    # It has asked for the next one's rule, without the last digit.
    if found != {canary.encode()}:
        tally.problems.append(f"{canary}: its memory has {found}")


def _canaries_in(pid: int) -> set[bytes]:
    found: set[bytes] = set(_CANARY.findall(Path(f"/proc/{pid}/environ").read_bytes()))
    with Path(f"/proc/{pid}/mem").open("rb") as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            area, mode, _, _, inode, *_ = line.split()
            if mode.startswith("rw") and inode == "0":
                first, last = (int(end, 16) for end in area.split("-"))
                memory.seek(first)
                with suppress(OSError):
                    found.update(_CANARY.findall(memory.read(last - first)))
    return found


def _open_files(process: psutil.Process) -> int:
    try:
        return process.num_fds()
    except psutil.AccessDenied:  # only root sees them
        return 0


def _end(wire: Wire, pid: int | None, chance: random.Random, tally: Tally) -> None:
    how = chance.choice(_ENDS if pid is not None else _ENDS[:-1])
    process = wire.process
    assert process.stdin is not None
    match how:
        case "launcher killed":
            process.kill()
        case "launcher terminated":
            process.terminate()
        case "interrupted":
            process.send_signal(signal.SIGINT)
        case "input closed":
            with suppress(BrokenPipeError):
                process.stdin.close()
        case _:
            with suppress(ProcessLookupError):
                psutil.Process(pid).kill()
    try:
        code = process.wait(30)
    except subprocess.TimeoutExpired:
        tally.problems.append(f"{wire.process.pid}: {how}, and its launcher stays")
        return
    if pid is not None:
        wanted = {"input closed": (0,), "session killed": (-9,), "launcher killed": (-9,)}.get(how, (0, -15, -2))
        if code not in wanted:
            tally.problems.append(f"{how}: exit code {code}")
        wait_until(lambda: not is_alive(pid), 10)


def test_sessions_that_are_killed_anywhere_leave_nothing_to_each_other(one_home: Home) -> None:
    tally = Tally()
    resident = psutil.Process(one_home.warm())
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(_session, repeat(one_home), range(10), repeat(tally)))
        wait_until(lambda: not resident.children())
        before, files = resident.memory_info().rss, _open_files(resident)
        list(pool.map(_session, repeat(one_home), range(10, SESSIONS), repeat(tally)))

    assert not tally.problems, "\n".join(tally.problems)
    assert tally.forks > SESSIONS // 4
    wait_until(lambda: not resident.children())
    assert not left_after([], str(one_home.folder), 10, spared=resident.pid)
    assert _open_files(resident) == files
    assert resident.memory_info().rss - before < _MAX_GROWTH
    with suppress(PermissionError):
        assert not _canaries_in(resident.pid)
