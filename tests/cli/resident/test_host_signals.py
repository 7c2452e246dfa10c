"""A host that ends, stops or interrupts the process it started does so to the session that serves for it."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import time
from collections.abc import Generator

import psutil
import pytest

from tests.cli.resident.own_home import Home, how_started, is_alive, server_pid, wait_until
from tests.cli.terminal_session import CTRL_C, TerminalSession
from tests.e2e.conftest import UNASKED, ours, upstream_file
from tests.e2e.processes import descendants, left_after
from tests.e2e.wire import Wire
from tests.repetitions import times

pytestmark = [pytest.mark.e2e, pytest.mark.chaos, pytest.mark.linux_only("only Linux has a resident process")]

GONE_WITHIN_S = times(30, in_full_run=3)
"""Nothing of a busy machine's time is ours. What would not end by itself would go on for ten minutes."""


@pytest.fixture
def session(one_home: Home, monkeypatch: pytest.MonkeyPatch) -> Generator[Wire]:
    """With an upstream that runs."""
    file = upstream_file(one_home.folder / "upstreams.json", plain=ours("plain", "healthy", str(one_home.folder)))
    with one_home.fork("--upstreams", str(file), *UNASKED) as wire:
        wire.text("mcp__plain__pid", {})
        yield wire


def pids(wire: Wire) -> tuple[int, int]:
    return wire.process.pid, server_pid(wire)


@pytest.mark.parametrize(
    ("ending", "status"),
    [("SIGTERM", 0), ("SIGINT", 0), ("SIGKILL", -9), ("SIGHUP", -1), ("EOF", 0)],
)
def test_the_server_and_its_children_end_with_the_launcher(
    one_home: Home, session: Wire, ending: str, status: int
) -> None:
    workspace = one_home.folder / "ws"
    session.start("tools/call", {"name": "Bash", "arguments": {"command": "touch running; sleep 600"}})
    wait_until((workspace / "running").exists)
    _, server = pids(session)
    (seen,) = (one for one in descendants(psutil.Process(server).ppid()) if one.pid == server)
    family = [seen, *descendants(server)]

    if ending == "EOF":
        assert session.process.stdin is not None
        session.process.stdin.close()
    else:
        session.process.send_signal(signal.Signals[ending])

    assert session.process.wait(GONE_WITHIN_S) == status
    assert len(family) >= 3
    assert left_after(family, f"{one_home.folder}/nowhere", GONE_WITHIN_S) == []


@pytest.mark.parametrize("ending", ["SIGTERM", "SIGKILL", "EOF"])
def test_a_second_later_nothing_of_it_runs(one_home: Home, ending: str) -> None:
    """A busy machine may need more than one try. If a timer of ours took longer, each try would."""
    tries_s: list[float] = []
    while not tries_s or (tries_s[-1] >= 1.0 and len(tries_s) < 5):
        tries_s.append(_seconds_until_gone(one_home, ending))

    assert tries_s[-1] < 1.0, tries_s


def _seconds_until_gone(one: Home, ending: str) -> float:
    """The server, an upstream and a command in the background."""
    file = upstream_file(one.folder / "upstreams.json", plain=ours("plain", "healthy", str(one.folder)))
    with one.fork("--upstreams", str(file), *UNASKED) as wire:
        wire.text("mcp__plain__pid", {})
        wire.text("Bash", {"command": "exec sleep 605", "run_in_background": True})
        server = server_pid(wire)
        wait_until(lambda: any("sleep 605" in seen.command for seen in descendants(server)))
        ends = ("sleep 605", f"healthy {one.folder}")
        children = [seen.pid for seen in descendants(server) if seen.command.endswith(ends)]
        assert len(children) >= 2
        began_s = time.monotonic()
        if ending == "EOF":
            assert wire.process.stdin is not None
            wire.process.stdin.close()
        else:
            wire.process.send_signal(signal.Signals[ending])
        wait_until(lambda: not any(map(is_alive, (server, *children))))
        return time.monotonic() - began_s


def test_a_sigterm_that_a_command_sends_to_the_launcher_ends_nothing(session: Wire) -> None:
    launcher, server = pids(session)

    # What reads the script does not see the number.
    text = session.text("Bash", {"command": f"n=$(({launcher} + 0)); kill -TERM $n; echo sent; sleep 0.3"})

    assert "sent" in text
    assert session.text("Bash", {"command": "echo serves"}).strip() == "serves"
    assert is_alive(launcher)
    assert is_alive(server)


def test_a_sigterm_of_somebody_else_ends_it_while_a_command_runs(one_home: Home, session: Wire) -> None:
    session.start("tools/call", {"name": "Bash", "arguments": {"command": "touch running; sleep 600"}})
    wait_until((one_home.folder / "ws/running").exists)

    def is_over() -> bool:
        """After one more: two that come at the same time are one."""
        subprocess.run(["/bin/kill", str(session.process.pid)], check=False)
        time.sleep(0.2)
        return session.process.poll() is not None

    wait_until(is_over)
    assert session.process.returncode == 0


@pytest.mark.parametrize("stop", [signal.SIGTSTP, signal.SIGSTOP])
def test_a_stopped_launcher_serves_nothing_until_it_goes_on(session: Wire, stop: signal.Signals) -> None:
    launcher, server = pids(session)

    session.process.send_signal(stop)
    wait_until(lambda: psutil.Process(launcher).status() == psutil.STATUS_STOPPED)
    if stop == signal.SIGTSTP:
        wait_until(lambda: psutil.Process(server).status() == psutil.STATUS_STOPPED)
    else:
        time.sleep(1.0)  # it looks every half second
    request = session.start("tools/list")
    with pytest.raises(queue.Empty):
        session.answer(request, 1.0)
    session.process.send_signal(signal.SIGCONT)

    assert "tools" in session.answer(request)["result"]


def test_ctrl_c_of_a_terminal_ends_it(one_home: Home) -> None:
    one_home.warm()
    (one_home.folder / "ws").mkdir(exist_ok=True)
    fifo = one_home.folder / "input"
    os.mkfifo(fifo)
    command = ["/bin/sh", "-c", f'exec "$@" < {fifo} > {one_home.folder}/output', "sh"]
    command += [sys.executable, "-m", "goat_mcp", "serve"]
    terminal = TerminalSession(command, cwd=one_home.folder / "ws", variables=one_home.environment)
    try:
        with fifo.open("w") as pipe:
            hello = '{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
            pipe.write(hello)
            pipe.flush()
            output = one_home.folder / "output"
            wait_until(lambda: output.exists() and output.read_bytes())

            terminal.type(CTRL_C)

            assert terminal.seconds_to_end() < GONE_WITHIN_S
            assert terminal.process.returncode == 0
            assert "Traceback" not in terminal.shown
    finally:
        terminal.process.kill()


def test_a_restart_in_place_keeps_its_launcher(one_home: Home) -> None:
    with one_home.fork("--toolset", "base", *UNASKED) as wire:
        launcher, server = pids(wire)

        wire.text("self-restart__request", {"reason": "a test"})
        wire.text("self-restart__request", {"reason": "a second one"})

        assert pids(wire) == (launcher, server)
        assert how_started(wire) == "resident"
        wire.process.kill()
        wait_until(lambda: not is_alive(server))


@pytest.mark.parametrize(("words", "status"), [(["--nonsense"], 1), (["--config", "/nowhere.yaml"], 1)])
def test_a_usage_error_is_the_launchers(one_home: Home, words: list[str], status: int) -> None:
    one_home.warm()
    command = [*one_home.python, "-m", "goat_mcp", "serve", *words]

    found = [
        subprocess.run(
            command, env=one_home.environment | more, cwd=one_home.folder, stdin=subprocess.DEVNULL, capture_output=True
        )
        for more in ({}, {"GOAT_MCP_RESIDENT": "0"})
    ]

    forked, alone = ((one.returncode, one.stdout, one.stderr) for one in found)
    assert forked == alone
    assert forked[0] == status


def test_no_process_of_a_session_can_be_looked_into(session: Wire) -> None:
    launcher, server = pids(session)
    resident = psutil.Process(server).ppid()

    # An undumpable process belongs to root for /proc; root's own look the same, so the flag is asked for by ptrace's
    # rule: without the right to trace everybody, nobody reads the environment of one.
    program = """
import ctypes, sys
for right in (1, 2, 19, 21, 38):
    ctypes.CDLL(None).prctl(24, right, 0, 0, 0)
import os
os.execv("/bin/cat", ["cat", *sys.argv[1:]])
"""
    for pid in (launcher, server, resident):
        tried = subprocess.run([sys.executable, "-c", program, f"/proc/{pid}/environ"], capture_output=True, text=True)
        assert tried.returncode != 0
        assert "Permission denied" in tried.stderr
