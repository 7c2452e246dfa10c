"""`goat.lock` with many writers at once: together they write it a few times, and none of them loses anything."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.telemetry import Telemetry
from goat_mcp.upstreams.config.entry import StdioLaunch, UpstreamConfig
from goat_mcp.upstreams.pinning import pin_lock
from goat_mcp.upstreams.pinning.pin_lock import LockContent, Pin, PinLock, PinnedDefinitions, ServerPins
from goat_mcp.upstreams.pinning.pins import ReceivedDefinition, UpstreamPins

WRITERS = 20
WAIT_S = 20.0
Edit = Callable[[LockContent], None]


def pinning(server: str) -> Edit:
    def edit(content: LockContent) -> None:
        content.servers[server] = ServerPins(launch="x", pins={"tool": {"t": Pin("1" * 64)}})

    return edit


def together(lock: PinLock, edits: list[Edit]) -> list[Future[LockContent]]:
    """Make the first change, and the others while it is being made."""
    others_wait = threading.Event()

    def first(content: LockContent) -> None:
        others_wait.wait(WAIT_S)
        edits[0](content)

    with ThreadPoolExecutor(len(edits)) as threads:
        made = [threads.submit(lock.change, edit) for edit in (first, *edits[1:])]
        deadline = time.monotonic() + WAIT_S
        while len(lock._waiting) < len(edits) - 1 and time.monotonic() < deadline:  # pyright: ignore[reportPrivateUsage]
            time.sleep(0.005)
        others_wait.set()
    return made


def test_changes_that_come_together_are_written_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock, writes = PinLock(StateDirectory(tmp_path)), list[Path]()
    write = pin_lock.write_private

    def counted(path: Path, data: bytes, *, outlasts_power: bool = False) -> None:
        writes.append(path)
        write(path, data, outlasts_power=outlasts_power)

    monkeypatch.setattr(pin_lock, "write_private", counted)

    made = together(lock, [pinning(f"s{number}") for number in range(WRITERS)])

    everybody = {f"s{number}" for number in range(WRITERS)}
    assert PinLock(StateDirectory(tmp_path)).content().servers.keys() == everybody
    assert made[-1].result().servers.keys() == everybody
    assert len(writes) == 2


def test_a_change_that_fails_half_way_leaves_nothing_and_fails_alone(tmp_path: Path) -> None:
    lock = PinLock(StateDirectory(tmp_path))

    def broken(content: LockContent) -> None:
        content.servers["broken"] = ServerPins(launch="half")
        raise OSError("no room for its definitions")

    first, before, failed, after = together(lock, [pinning("a"), pinning("b"), broken, pinning("c")])

    assert isinstance(failed.exception(), OSError)
    assert [one.exception() for one in (first, before, after)] == [None, None, None]
    assert PinLock(StateDirectory(tmp_path)).content().servers.keys() == {"a", "b", "c"}


def test_nobody_thinks_a_lock_written_that_could_not_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = PinLock(StateDirectory(tmp_path))

    def full(path: Path, data: bytes, *, outlasts_power: bool = False) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(pin_lock, "write_private", full)

    made = together(lock, [pinning("a"), pinning("b")])

    assert [str(one.exception()) for one in made] == ["no space left on device"] * 2
    assert lock.content().servers == {}


def test_what_an_upstream_pins_itself_is_no_reason_to_show_it_again(tmp_path: Path) -> None:
    lock = PinLock(StateDirectory(tmp_path))
    mine = UpstreamPins(
        UpstreamConfig(name="x", server="x", target=StdioLaunch("x")),
        lock,
        PinnedDefinitions(StateDirectory(tmp_path)),
        Telemetry("error"),
    )
    seen = [ReceivedDefinition("t", "1" * 64, {"name": "t"}, {"name": "t"})]
    mine.settle("tool", seen, "launch")
    mine.view("tool", seen, lambda entry: entry)

    lock.change(pinning("another"))
    assert not mine.is_outdated("tool")

    lock.change(lambda content: content.servers["x"].pins["tool"].update(t=Pin("2" * 64)))
    assert mine.is_outdated("tool")
