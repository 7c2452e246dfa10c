"""SIGTERM from outside stops the server; SIGTERM from its commands does not; its children hear SIGTERM."""

from __future__ import annotations

import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from goat_mcp.processes import stop_signals
from goat_mcp.processes.process_guard import ProcessGuard
from goat_mcp.processes.process_table import Process
from goat_mcp.processes.stop_signals import StopSignals
from tests.processes.processes import WITHOUT_LINUX

pytestmark = pytest.mark.linux_only("only Linux names the sender of a signal")

SERVER = """
import asyncio, os, sys
from goat_mcp.processes.stop_signals import StopSignals
assert StopSignals.block()
from goat_mcp.processes.process_guard import ProcessGuard
from goat_mcp.processes.command_start import start_command

async def serve():
    guard, stop, loop = ProcessGuard(), asyncio.Event(), asyncio.get_running_loop()

    def on_stop():
        print("stopped", flush=True)
        loop.call_soon_threadsafe(stop.set)

    signals = StopSignals(on_stop, guard)
    signals.start()
    command = start_command(sys.argv[1], bash="/bin/bash", directory="/", environment={"PATH": os.environ["PATH"]},
                            guard=guard, create_file=lambda stem: None)
    await command.wait_ended(60)
    print(command.exit_code, command.capture.shown(1000).text, flush=True)
    await stop.wait()
    guard.close()
asyncio.run(serve())
"""


@contextmanager
def server(script: str, program: str = SERVER) -> Generator[subprocess.Popen[str]]:
    # A name of its own: `pkill -f` of a test that runs beside this one must not find it.
    name = f"server-{secrets.token_hex(8)}"
    command = [sys.executable, "-c", program, script.replace("NAME", f"[s]{name[1:]}"), name]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait(60)


@pytest.mark.parametrize(
    "script",
    [
        "kill $PPID; sleep 0.3; echo alive",
        "(sleep 0.1; exec kill $PPID) & wait; sleep 0.3; echo alive",
        "/bin/kill $PPID; sleep 0.3; echo alive",
        "pkill -f NAME; sleep 0.3; echo alive",
        'us=$PPID; (setsid bash -c "kill $us; sleep 1; kill $us; sleep 1" &); sleep 2.2; echo alive',
        'us=$PPID; env -i /bin/bash -c "kill $us; sleep 1; kill $us; sleep 1"; echo alive',
    ],
)
def test_a_signal_from_a_command_is_ignored_and_one_from_outside_stops(script: str) -> None:
    with server(script) as process:
        assert process.stdout is not None

        assert process.stdout.readline() == "0 alive\n"

        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "stopped\n"
        assert process.wait(60) == 0


# The same on a busy machine: what follows takes long enough for the sender to be gone.
SLOWED = """
import time
from goat_mcp.processes.process_guard import ProcessGuard
from goat_mcp.processes.stop_signals import StopSignals
def watch(*args, watch=ProcessGuard.watch, **more): time.sleep({known_s}); watch(*args, **more)
def counts(*args, counts=StopSignals._counts): time.sleep({looked_at_s}); return counts(*args)
ProcessGuard.watch, StopSignals._counts = watch, counts
"""
LATE = {
    "the command is not yet known": SLOWED.format(known_s=2, looked_at_s=0.5),
    "the command has ended": SLOWED.format(known_s=0, looked_at_s=1),
}


@pytest.mark.parametrize("slowed", LATE.values(), ids=LATE.keys())
def test_a_signal_that_a_command_sent_is_ignored_however_late_it_is_looked_at(slowed: str) -> None:
    with server("/bin/kill $PPID", slowed + SERVER) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "0 \n"
        time.sleep(2)  # one that would stop has the time to
        assert process.poll() is None

        signal_by_a_process_that_ends_at_once(process.pid)
        assert process.stdout.readline() == "stopped\n"


def test_a_sender_that_ends_while_it_is_looked_at_is_in_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []

    def ends(pid: int) -> Process | None:
        looks.append(pid)
        return Process(pid=pid, parent=1, group=pid, session=pid, name="kill", started=1) if len(looks) == 1 else None

    monkeypatch.setattr(stop_signals, "living_process", ends)
    signals = StopSignals(lambda: None, ProcessGuard())

    assert signals._descends(2**22 + 1) is None  # pyright: ignore[reportPrivateUsage]  # who sends cannot be timed so


def test_commands_hear_sigterm_although_the_server_blocks_it() -> None:
    with server("sleep 30 & kill $!; wait $!; echo $?; trap 'echo heard' TERM; kill $$") as process:
        assert process.stdout is not None

        assert [process.stdout.readline() for _ in range(2)] == ["0 143\n", "heard\n"]


def test_of_two_signals_from_senders_that_are_gone_the_second_counts_while_a_command_runs() -> None:
    with server("sleep 0.5; echo ended; sleep 30 >/dev/null 2>&1 & true") as process:
        assert process.stdout is not None and process.stdout.readline() == "0 ended\n"

        signal_by_a_process_that_ends_at_once(process.pid)
        time.sleep(0.3)  # one that would stop at the first has the time to
        assert process.poll() is None
        signal_by_a_process_that_ends_at_once(process.pid)

        assert process.stdout.readline() == "stopped\n"


def signal_by_a_process_that_ends_at_once(pid: int) -> None:
    # Held while the sender ends, so that nobody can look at it; the signal is then waiting with its number.
    process = subprocess.Popen(["/bin/sh", "-c", f"kill -s STOP {pid}; kill -s TERM {pid}"])
    process.wait(60)
    subprocess.run(["/bin/sh", "-c", f"kill -s CONT {pid}"], check=True)


STOPPED_WITHOUT_SENDERS = """
import asyncio, os, sys
from goat_mcp.processes.command_start import start_command
from goat_mcp.processes.process_guard import ProcessGuard
from goat_mcp.server.run import stopping_on_signals

async def serve():
    guard, stop = ProcessGuard(), asyncio.Event()
    with stopping_on_signals(stop.set, guard):
        command = start_command("sleep 600", bash="/bin/bash", directory="/", environment={"PATH": os.environ["PATH"]},
                                guard=guard, create_file=lambda stem: None)
        print("up", flush=True)
        await stop.wait()
        print("stopped", flush=True)
        guard.close()
asyncio.run(serve())
"""


def test_where_senders_are_unknown_the_first_signal_stops_although_a_command_runs() -> None:
    with server("", WITHOUT_LINUX + STOPPED_WITHOUT_SENDERS) as process:
        assert process.stdout is not None and process.stdout.readline() == "up\n"

        signal_by_a_process_that_ends_at_once(process.pid)

        assert process.stdout.readline() == "stopped\n"
        assert process.wait(60) == 0
