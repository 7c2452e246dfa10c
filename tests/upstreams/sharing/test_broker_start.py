"""How a session finds the broker or starts it: many at once, one that just ends, a folder that is of no use."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path

import anyio
import pytest

from goat_mcp.upstreams.faults import NotShared
from goat_mcp.upstreams.sharing.broker_start import broker_connection, broker_name, start_broker
from goat_mcp.upstreams.sharing.runtime_folder import OwnedSocket, owned_socket
from goat_mcp.upstreams.sharing.shared_connect import Sharing
from tests.upstreams.sharing.brokers import Brokers, quick
from tests.upstreams.sharing.test_shared_upstreams import TOOL, sessions

pytestmark = [pytest.mark.anyio, pytest.mark.linux_only("a socket must say who is at its other end")]


async def test_many_sessions_at_once_start_one_broker(brokers: Brokers) -> None:
    starts: list[str] = []
    connections: list[socket.socket] = []

    def start(folder: Path, name: str) -> None:
        starts.append(name)
        quick().start(folder, name)

    async def connect() -> None:
        connections.append(await broker_connection(start))

    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(connect)
    for one in connections:
        one.close()

    assert len(connections) == 20
    assert len(starts) == 1


async def test_a_broker_that_cannot_listen_is_not_waited_for(brokers: Brokers) -> None:
    brokers.folder.mkdir(mode=0o700)
    (brokers.folder / f"{broker_name()}.lock").mkdir()  # as a full disk or a folder that cannot be written to
    begun_s = time.monotonic()

    with pytest.raises(NotShared, match="cannot be started: it ended with status 1"):
        await broker_connection(start_broker)

    assert time.monotonic() - begun_s < 12.0


async def test_a_session_that_comes_as_the_broker_ends_has_the_next_one(brokers: Brokers, tmp_path: Path) -> None:
    brokers.folder.mkdir(mode=0o700)
    ending = owned_socket(brokers.folder, broker_name())
    assert ending is not None
    threading.Thread(target=_end_with_the_first, args=[ending], daemon=True).start()

    async with sessions(tmp_path, entries=1) as ours:
        told = await ours.all[0].call(f"{TOOL}pid")
        shown = ours.all[0].status("up")

    assert told.text == str(ours.processes()[0])
    assert shown.last_failure is None
    assert shown.sharing is not None
    assert shown.sharing.is_shared


def _end_with_the_first(ending: OwnedSocket) -> None:
    ending.listening.setblocking(True)
    accepted, _ = ending.listening.accept()
    ending.release()
    accepted.close()


async def test_without_its_socket_a_broker_keeps_its_sessions_and_the_next_ones_have_another(
    brokers: Brokers, tmp_path: Path
) -> None:
    async with sessions(tmp_path, entries=1) as first:
        before, broker = (await first.all[0].call(f"{TOOL}pid")).text, brokers.pid
        (brokers.folder / broker_name()).unlink()
        (tmp_path / "later").mkdir()
        async with sessions(tmp_path / "later", entries=1) as second:
            shown = second.all[0].status("up").sharing
        after = (await first.all[0].call(f"{TOOL}pid")).text

    assert before == after
    assert shown is not None
    assert shown.is_shared
    assert shown.broker_pid == brokers.pid != broker


async def test_windows_of_different_terminals_share(
    brokers: Brokers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    for terminal in ("xterm-256color", "dumb"):
        monkeypatch.setenv("TERM", terminal)
        async with sessions(tmp_path, entries=1, sharing=_same_start) as ours:
            told.append((await ours.all[0].call(f"{TOOL}pid")).text)

    assert told[0] == told[1]


_same_start: Sharing = quick()
