"""Whatever happens to the resident process or to its folder, every start is served."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from tests.cli.resident.own_home import RESIDENT, Home, how_started, is_alive, server_pid, wait_until
from tests.e2e.wire import Wire
from tests.repetitions import times

pytestmark = [pytest.mark.e2e, pytest.mark.real_processes, pytest.mark.chaos]


def _sockets(one: Home) -> list[Path]:
    return sorted(one.sockets.glob("*.sock"))


def test_the_first_start_serves_by_itself_and_the_next_is_a_fork(one_home: Home) -> None:
    with one_home.server() as first:
        how = how_started(first)
        assert "it is started now" in how

    with one_home.fork() as second:
        assert psutil.Process(server_pid(second)).ppid() in one_home.residents()
        assert server_pid(second) != second.process.pid


def test_a_removed_socket_keeps_nobody_waiting(one_home: Home) -> None:
    one_home.warm()
    _sockets(one_home)[0].unlink()

    with one_home.server() as served:
        assert how_started(served) == "the resident process is just starting"
        assert served.text("Bash", {"command": "echo served"}).strip() == "served"


def test_a_stale_socket_is_replaced(one_home: Home) -> None:
    old = one_home.warm()
    os.kill(old, signal.SIGKILL)
    wait_until(lambda: not is_alive(old))

    with one_home.server() as served:
        assert "it is started now" in how_started(served)

    assert one_home.warm() != old


def test_sessions_outlive_a_killed_resident_process(one_home: Home) -> None:
    with one_home.fork() as session:
        resident = psutil.Process(server_pid(session)).ppid()
        os.kill(resident, signal.SIGKILL)
        wait_until(lambda: not is_alive(resident))

        assert session.text("Bash", {"command": "echo on"}).strip() == "on"
        pid = server_pid(session)
        session.process.kill()
        wait_until(lambda: not is_alive(pid), 5)


@pytest.mark.parametrize("ending", ["EOF", "SIGTERM"])
def test_a_session_that_ends_well_is_reported_so_without_a_resident_process(one_home: Home, ending: str) -> None:
    with one_home.fork() as session:
        resident = psutil.Process(server_pid(session)).ppid()
        os.kill(resident, signal.SIGKILL)
        wait_until(lambda: not is_alive(resident))

        if ending == "EOF":
            assert session.process.stdin is not None
            session.process.stdin.close()
        else:
            session.process.terminate()

        assert session.process.wait(30) == 0
    assert "resident process has ended" not in (one_home.folder / "stderr").read_text()


def test_a_session_that_is_killed_without_a_resident_process_is_reported(one_home: Home) -> None:
    with one_home.fork() as session:
        pid = server_pid(session)
        resident = psutil.Process(pid).ppid()
        os.kill(resident, signal.SIGKILL)
        wait_until(lambda: not is_alive(resident))

        os.kill(pid, signal.SIGKILL)

        assert session.process.wait(30) == 70
    assert "resident process has ended" in (one_home.folder / "stderr").read_text()


def test_a_resident_process_that_can_open_no_more_files_makes_room_for_another(one_home: Home) -> None:
    few = "from resource import *\nsetrlimit(RLIMIT_NOFILE, (14, getrlimit(RLIMIT_NOFILE)[1]))"
    sessions: list[Wire] = []
    with one_home.resident(before=few) as full, ExitStack() as all_of_them:
        while _sockets(one_home):
            assert len(sessions) < 16, [how_started(one) for one in sessions]
            sessions.append(all_of_them.enter_context(one_home.server()))
        before_s = sum(full.cpu_times()[:2])
        of_it = [one for one in sessions if how_started(one) == RESIDENT]
        other = all_of_them.enter_context(one_home.fork())

        assert of_it
        assert psutil.Process(server_pid(other)).ppid() != full.pid
        assert [one.text("Bash", {"command": "echo on"}).strip() for one in of_it] == ["on"] * len(of_it)
        assert sum(full.cpu_times()[:2]) - before_s < 0.2


def test_what_killed_ones_of_other_builds_have_left_is_removed(one_home: Home) -> None:
    one_home.sockets.mkdir(mode=0o700)
    old, recent = (one_home.sockets / f"{digit * 32}.lock" for digit in "ab")
    for lock in (old, recent):
        lock.touch()
    old.with_suffix(".sock").touch()
    os.utime(old, (1, 1))

    with one_home.resident() as resident:
        (own,) = _sockets(one_home)
        assert {one.name for one in one_home.sockets.iterdir()} == {recent.name, own.name, f"{own.stem}.lock"}
        resident.terminate()
        resident.wait(20)

    assert [one.name for one in one_home.sockets.iterdir()] == [recent.name]


@pytest.mark.parametrize("words", [("-Im", "goat_mcp"), ("-I", "-W", "error::BytesWarning", "-Xdev", "-m", "goat_mcp")])
def test_all_ways_to_write_the_options_of_python_start_a_resident_process(one_home: Home, words: Sequence[str]) -> None:
    def window() -> Wire:
        folder = one_home.folder / "ws"
        folder.mkdir(exist_ok=True)
        return Wire([sys.executable, *words, "serve"], one_home.environment, folder)

    with window() as first:
        first.handshake()
        wait_until(lambda: _sockets(one_home))
    ends_at_s = time.monotonic() + 60
    while True:
        with window() as second:
            second.handshake()
            if (how := how_started(second)) == RESIDENT:
                return
            assert time.monotonic() < ends_at_s, how


@pytest.mark.root_only("gives a folder away")
def test_the_home_of_another_user_gets_nothing(one_home: Home) -> None:
    os.chown(one_home.folder, 65534, 65534)

    with one_home.server(XDG_RUNTIME_DIR="") as served:
        assert how_started(served) == f"HOME belongs to another user: {one_home.folder}"
    assert not (one_home.folder / ".cache/goat-mcp/run").exists()


def test_sessions_outlive_the_end_of_the_resident_process(one_home: Home) -> None:
    with one_home.fork() as session:
        resident = psutil.Process(server_pid(session)).ppid()
        os.kill(resident, signal.SIGTERM)
        wait_until(lambda: not _sockets(one_home))

        assert session.text("Bash", {"command": "echo on"}).strip() == "on"
        assert one_home.warm() != resident
        assert is_alive(resident)
    wait_until(lambda: not is_alive(resident))


def test_a_stopped_resident_process_is_waited_for_200_ms_and_serves_nobody_twice(one_home: Home) -> None:
    resident = one_home.warm()
    os.kill(resident, signal.SIGSTOP)
    try:
        with one_home.server() as served:
            assert how_started(served) == "the resident process did not answer within 200 ms"
            assert server_pid(served) == served.process.pid
            os.kill(resident, signal.SIGCONT)
            wait_until(lambda: psutil.Process(resident).status() == psutil.STATUS_SLEEPING)

            wait_until(lambda: not psutil.Process(resident).children())
            assert served.text("Bash", {"command": "echo once"}).strip() == "once"
    finally:
        os.kill(resident, signal.SIGCONT)
    assert one_home.warm() == resident


def test_a_launcher_that_was_stopped_too_long_serves_by_itself(one_home: Home) -> None:
    """The fork waits two seconds for its word; nobody may be left without a server."""
    resident = one_home.warm()
    os.kill(resident, signal.SIGSTOP)
    with one_home.window() as window:
        # It waits for the resident process now: connected, and nobody has answered.
        wait_until(lambda: _is_connected(window.process.pid))
        os.kill(window.process.pid, signal.SIGSTOP)
        os.kill(resident, signal.SIGCONT)
        wait_until(lambda: psutil.Process(resident).children())
        wait_until(lambda: not psutil.Process(resident).children())
        os.kill(window.process.pid, signal.SIGCONT)
        window.handshake()

        assert how_started(window) != RESIDENT
        assert window.text("Bash", {"command": "echo served"}).strip() == "served"


def _is_connected(pid: int) -> bool:
    return any(one.type == socket.SOCK_STREAM for one in psutil.Process(pid).net_connections("unix"))


def test_a_lock_that_somebody_holds_keeps_nobody_waiting(one_home: Home) -> None:
    old = one_home.warm()
    os.kill(old, signal.SIGKILL)
    wait_until(lambda: not is_alive(old))
    lock = next(iter(one_home.sockets.glob("*.lock")))
    holder = subprocess.Popen(["flock", str(lock), "sleep", "600"])
    try:
        wait_until(lambda: subprocess.run(["flock", "-n", str(lock), "true"], check=False).returncode)
        with one_home.server() as served:
            assert how_started(served) == "the resident process is just starting"
    finally:
        for child in psutil.Process(holder.pid).children():
            child.kill()
        holder.kill()
        holder.wait()


@pytest.mark.parametrize("mode", [0o755, 0o777])
def test_a_folder_that_others_can_use_is_not_used(one_home: Home, mode: int) -> None:
    one_home.sockets.mkdir()
    one_home.sockets.chmod(mode)

    with one_home.server() as served:
        assert "mode 0700" in how_started(served)
    assert not one_home.residents()


@pytest.mark.root_only("gives a folder away")
def test_a_folder_of_another_user_is_not_used(one_home: Home) -> None:
    one_home.sockets.mkdir(mode=0o700)
    os.chown(one_home.sockets, 65534, 65534)

    with one_home.server() as served:
        assert "mode 0700" in how_started(served)
    assert not one_home.residents()


def test_a_removed_folder_is_made_again(one_home: Home) -> None:
    old = one_home.warm()
    shutil.rmtree(one_home.sockets)

    assert one_home.warm() != old


def test_a_start_without_stderr_is_not_handed_over(one_home: Home) -> None:
    """The launcher's connection would take the number of what is closed, and the fork would never see its end."""
    resident = one_home.warm()
    words = shlex.join([*one_home.python, "-m", "goat_mcp", "serve"])
    with Wire(["sh", "-c", f"exec {words} 2>&-"], one_home.environment, one_home.folder / "ws") as window:
        window.start("initialize", _INITIALIZE)
        time.sleep(1)  # the time in which it would be handed over
        assert not psutil.Process(resident).children()


def test_200_starts_at_once_are_all_served(one_home: Home) -> None:
    """First without a resident process, then with one."""
    for how_many in (times(8, in_full_run=200), times(16, in_full_run=200)):
        windows = [one_home.window() for _ in range(how_many)]
        try:
            for window in windows:
                window.start("initialize", _INITIALIZE)
            for window in windows:
                assert "result" in window.answer(1, 400)
        finally:
            _end_all([window.process for window in windows])
        one_home.warm()
        assert len(one_home.residents()) == 1


_INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "many", "version": "1"}}


def _end_all(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        assert process.stdin is not None
        process.stdin.close()
    enders = [threading.Thread(target=process.wait, args=(60,)) for process in processes]
    for ender in enders:
        ender.start()
    for ender in enders:
        ender.join()
    assert [process.returncode for process in processes] == [0] * len(processes)


def test_a_resident_process_that_waits_for_a_hung_session_computes_nothing(one_home: Home) -> None:
    with one_home.fork() as session:
        pid = server_pid(session)
        resident = psutil.Process(psutil.Process(pid).ppid())
        os.kill(pid, signal.SIGSTOP)
        session.process.kill()
        before_s = sum(resident.cpu_times()[:2])

        time.sleep(2)  # the time it would compute in

        assert sum(resident.cpu_times()[:2]) - before_s < 0.2
        assert is_alive(pid)
        wait_until(lambda: not is_alive(pid), 15)  # it is killed in the end


def test_other_options_of_python_have_another_resident_process(one_home: Home) -> None:
    """Warnings that one host wants as errors are not another's."""
    first = one_home.warm()
    other = replace(one_home, python=(sys.executable, "-W", "error::BytesWarning", "-X", "frozen_modules=on"))

    second = other.warm()

    assert first != second
    assert sorted(one_home.residents()) == sorted((first, second))
