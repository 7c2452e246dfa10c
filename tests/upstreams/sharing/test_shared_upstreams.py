"""Two sessions and one process of an upstream, with a real broker between them. WSP-1."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from goat_mcp.core.calling_client import ClientRequest
from goat_mcp.core.errors import ErrorCode
from goat_mcp.upstreams.sharing.broker_start import broker_name
from goat_mcp.upstreams.sharing.shared_connect import Sharing
from goat_mcp.upstreams.status import SharingStatus, UpstreamState
from tests.upstreams.calls.test_multi_round import Person
from tests.upstreams.fleet import Fleet, fleet, server
from tests.upstreams.sharing.brokers import Brokers, pids, quick, until
from tests.upstreams.test_stdio_upstreams import is_alive
from tests.upstreams.transports.test_callers import Listener

pytestmark = [pytest.mark.anyio, pytest.mark.e2e, pytest.mark.linux_only("a socket must say who is at its other end")]
TOOL = "mcp__up__"


@dataclass
class Sessions:
    """Several sessions with one entry each, all called `up`."""

    all: list[Fleet]
    pids: Path

    def processes(self) -> list[int]:
        return pids(self.pids)


@asynccontextmanager
async def sessions(
    folder: Path, *kinds: str, entries: int = 2, sharing: Sharing | None = None, **members: Any
) -> AsyncGenerator[Sessions]:
    """`kinds` say how the server behaves. Each member may be a list with one value for each session."""
    file = folder / "pids"
    async with AsyncExitStack() as stack:
        running: list[Fleet] = []
        for number in range(entries):
            own = folder / f"session {number}"
            own.mkdir(exist_ok=True)
            chosen: dict[str, Any] = {"share": True, **members}
            chosen = {key: value[number] if isinstance(value, list) else value for key, value in chosen.items()}
            wanted = {key: value for key, value in chosen.items() if value is not None}
            entry = {"up": server("shared.py", file, *kinds, **wanted)}
            running.append(await stack.enter_async_context(fleet(own, entry, sharing=sharing or quick())))
        yield Sessions(running, file)


async def test_sessions_with_the_same_entry_share_one_process(brokers: Brokers, tmp_path: Path) -> None:
    async with sessions(tmp_path, entries=3) as ours:
        told = [(await one.call(f"{TOOL}pid")).text for one in ours.all]
        shown = [one.status("up").sharing for one in ours.all]

    (process,) = ours.processes()
    assert told == [str(process)] * 3
    status = SharingStatus(
        is_shared=True, pid=process, broker_pid=brokers.pid, sessions=(os.getpid(),), folder=str(Path.home())
    )
    assert shown == [status] * 3


@pytest.mark.parametrize(
    "members",
    [
        {"env": [{"A": "1"}, {"A": "2"}]},
        {"cwd": ["/", "/tmp"]},
        {"share": [True, False]},
    ],
    ids=["environment", "folder", "not shared"],
)
async def test_sessions_whose_launches_differ_never_share(
    brokers: Brokers, tmp_path: Path, members: dict[str, Any]
) -> None:
    async with sessions(tmp_path, **members) as ours:
        told = {(await one.call(f"{TOOL}pid")).text for one in ours.all}

    assert len(told) == len(ours.processes()) == 2


async def test_principals_of_one_server_never_share(brokers: Brokers, tmp_path: Path) -> None:
    async with sessions(tmp_path) as ours:
        own = [await one.call(f"{TOOL}pid") for one in ours.all]
        theirs = [await one.call(f"{TOOL}pid", principal="somebody", session_key="s") for one in ours.all]

    assert own[0].text == own[1].text != theirs[0].text == theirs[1].text


async def test_a_shared_process_works_in_the_home_directory_unless_its_entry_says_otherwise(
    brokers: Brokers, tmp_path: Path
) -> None:
    async with sessions(tmp_path, entries=1) as ours:
        told = await ours.all[0].call(f"{TOOL}folder")

    assert told.text == str(Path.home())


async def test_calls_of_both_at_a_time_get_their_own_answers(brokers: Brokers, tmp_path: Path) -> None:
    texts: dict[tuple[int, int], str] = {}

    async def call(session: int, number: int) -> None:
        name = f"{TOOL}{'slow' if number % 10 == 0 else 'echo'}"
        result = await ours.all[session].call(name, {"text": f"{session}: {number}"})
        texts[session, number] = result.text

    async with sessions(tmp_path) as ours, anyio.create_task_group() as group:
        for number in range(60):
            group.start_soon(call, number % 2, number)

    assert texts == {(number % 2, number): f"{number % 2}: {number}" for number in range(60)}


async def test_progress_is_heard_by_whose_call_it_is(brokers: Brokers, tmp_path: Path) -> None:
    heard: list[list[float]] = [[], []]

    async def call(session: int) -> None:
        async def progress(done: float, total: float | None, message: str | None, **_: object) -> None:
            heard[session].append(done)

        await ours.all[session].call(f"{TOOL}slow", progress=progress, wants_progress=True)

    async with sessions(tmp_path) as ours:
        await call(0)
        first = [list(one) for one in heard]
        async with anyio.create_task_group() as group:
            group.start_soon(call, 0)
            group.start_soon(call, 1)

    assert first == [[1, 2, 3], []]
    assert heard == [[1, 2, 3] * 2, [1, 2, 3]]


async def test_a_cancelled_call_is_cancelled_at_the_process_and_others_go_on(brokers: Brokers, tmp_path: Path) -> None:
    slow = anyio.Event()
    async with sessions(tmp_path) as ours:
        async with anyio.create_task_group() as group:
            group.start_soon(ours.all[1].call, f"{TOOL}cancelled", {"text": "mine"})

            async def call() -> None:
                await ours.all[0].call(f"{TOOL}slow")
                slow.set()

            async with anyio.create_task_group() as others:
                others.start_soon(call)
                await ours.all[1].call(f"{TOOL}echo")
            group.cancel_scope.cancel()
        await ours.all[0].until((tmp_path / "pids.cancelled").exists)

    assert slow.is_set()
    assert (tmp_path / "pids.cancelled").read_text() == "mine"


async def test_a_session_that_ends_has_its_calls_cancelled(brokers: Brokers, tmp_path: Path) -> None:
    async with sessions(tmp_path, entries=1) as staying:
        async with sessions(tmp_path, entries=1) as leaving, anyio.create_task_group() as group:
            group.start_soon(leaving.all[0].failing, f"{TOOL}cancelled", {"text": "left"})
            await leaving.all[0].until(lambda: leaving.all[0].status("up").calls_in_flight == 1)
            await leaving.all[0].call(f"{TOOL}echo")
            group.cancel_scope.cancel()
        await staying.all[0].until((tmp_path / "pids.cancelled").exists)
        again = await staying.all[0].call(f"{TOOL}pid")

    assert [int(again.text)] == staying.processes()


# LIF-9
async def test_a_crash_fails_the_calls_of_all_with_its_last_words_and_it_is_started_once(
    brokers: Brokers, tmp_path: Path
) -> None:
    errors: list[Any] = []
    failed_s: list[float] = []
    crashed_s = 0.0

    async def call(one: Fleet) -> None:
        errors.append(await one.failing(f"{TOOL}cancelled"))
        failed_s.append(time.monotonic())

    async with sessions(tmp_path, entries=3) as ours:
        async with anyio.create_task_group() as group:
            for one in ours.all[:2]:
                group.start_soon(call, one)
            await ours.all[2].call(f"{TOOL}slow")
            crashed_s = time.monotonic()
            errors.append(await ours.all[2].failing(f"{TOOL}crash"))
        async with anyio.create_task_group() as group:
            for one in ours.all:
                group.start_soon(one.call, f"{TOOL}echo")

    assert [error.code for error in errors] == [ErrorCode.OUTCOME_UNKNOWN] * 3
    assert all("the process exited with status 7; its stderr ends: the last words" in one.message for one in errors)
    assert max(failed_s) - crashed_s < 1.0
    assert len(ours.processes()) == 2


async def test_a_server_that_cannot_start_fails_as_it_does_unshared(brokers: Brokers, tmp_path: Path) -> None:
    entries = {
        name: {"command": str(tmp_path / "no-such-program"), "share": is_shared}
        for name, is_shared in (("shared", True), ("own", False))
    }

    async with fleet(tmp_path, entries, sharing=quick()) as running:
        await running.until(lambda: all(running.status(name).reason_code for name in entries))
        shown = [running.status(name) for name in ("shared", "own")]

    assert shown[0].reason_code == shown[1].reason_code == "command_not_found"
    assert shown[0].detail == shown[1].detail


# LIF-8
async def test_a_killed_broker_takes_its_processes_along_and_the_next_call_starts_another(
    brokers: Brokers, tmp_path: Path
) -> None:
    async with sessions(tmp_path) as ours:
        first = brokers.pid
        os.kill(first, signal.SIGKILL)
        await ours.all[0].until(lambda: all(one.status("up").state is not UpstreamState.READY for one in ours.all))
        told = {(await one.call(f"{TOOL}pid")).text for one in ours.all}
        until(lambda: not is_alive(ours.processes()[0]))
        second = brokers.pid

    assert told == {str(ours.processes()[1])}
    assert first != second
    assert len(ours.processes()) == 2


async def test_what_nobody_has_used_for_a_while_is_ended_and_then_the_broker_and_its_socket(
    brokers: Brokers, tmp_path: Path
) -> None:
    async with sessions(tmp_path, sharing=quick(idle_s=1.0)) as ours:
        broker = brokers.pid
        await anyio.sleep(1.5)  # as long as sessions hold it, it stays
        assert is_alive(ours.processes()[0])

    until(lambda: not is_alive(ours.processes()[0]))
    until(lambda: not is_alive(broker))
    assert brokers.sockets() == []


async def test_the_next_session_finds_the_process_of_one_that_ended(brokers: Brokers, tmp_path: Path) -> None:
    told: list[str] = []
    for _ in range(2):
        async with sessions(tmp_path, entries=1) as ours:
            told.append((await ours.all[0].call(f"{TOOL}pid")).text)

    assert told[0] == told[1]


# CHG-1
async def test_a_changed_list_is_heard_of_by_all(brokers: Brokers, tmp_path: Path) -> None:
    async with sessions(tmp_path) as ours:
        listed = [one.status("up").catalog_at_s for one in ours.all]
        await ours.all[0].call(f"{TOOL}change")
        for one, before in zip(ours.all, listed, strict=True):
            await one.until(lambda one=one, before=before: one.status("up").catalog_at_s != before)


# FLW-4
async def test_a_log_message_goes_to_whose_call_it_is_about(brokers: Brokers, tmp_path: Path) -> None:
    clients = [Listener(capabilities={}), Listener(capabilities={})]

    async with sessions(tmp_path) as ours:
        for one, client in zip(ours.all, clients, strict=True):
            await one.call(f"{TOOL}echo", client=client, session_key="s")
        await ours.all[0].call(f"{TOOL}log", {"text": "a word"}, client=clients[0], session_key="s")

    assert [params["data"] for _, params in clients[0].heard] == ["a word"]
    assert clients[1].heard == []


class _Asked(Person):
    """A person who answers with a word of their own."""

    def __init__(self, word: str) -> None:
        super().__init__()
        self.word = word
        self.questions: list[str] = []

    async def ask(self, requests: Mapping[str, ClientRequest]) -> Mapping[str, dict[str, Any]]:
        self.questions += [str(request.params["message"]) for request in requests.values()]
        return {key: {"action": "accept", "content": {"word": self.word}} for key in requests}


# ERA-3
async def test_an_upstream_that_asks_gets_a_process_for_each_session_and_never_asks_the_wrong_one(
    brokers: Brokers, tmp_path: Path
) -> None:
    people = [_Asked("zero"), _Asked("one")]

    async def ask(number: int) -> Any:
        about = {"client": people[number], "session_key": "s"}
        result = await ours.all[number].call(f"{TOOL}ask", {"text": f"from {number}"}, **about)
        return json.loads(result.text)

    async with sessions(tmp_path) as ours:
        for number, one in enumerate(ours.all):
            await one.call(f"{TOOL}echo", client=people[number], session_key="s")
        refused = await ask(0)
        answers = [await ask(0), await ask(1), await ask(0)]

    assert "whose question is this" in refused["error"]["message"]
    assert [answer["content"]["word"] for answer in answers] == ["zero", "one", "zero"]
    assert people[0].questions == ["up: from 0"] * 2
    assert people[1].questions == ["up: from 1"]


def _roots_of(person: Person, client_has_some: bool) -> Sequence[Path]:
    return person.known_roots


async def test_each_session_that_has_roots_is_asked_for_its_own(brokers: Brokers, tmp_path: Path) -> None:
    with_roots = [Person(capabilities={"roots": {}}, known_roots=(tmp_path / f"root {number}",)) for number in range(2)]
    file = tmp_path / "pids.roots"

    def told() -> dict[str, Any]:
        lines = [line.split(" ", 1) for line in file.read_text().splitlines()] if file.exists() else []
        return {pid: json.loads(said).get("roots") for pid, said in lines}

    own: list[str] = []
    async with AsyncExitStack() as stack:
        for number, person in enumerate(with_roots):
            (tmp_path / f"{number}").mkdir()
            entry = {"up": server("shared.py", tmp_path / "pids", "roots", share=True)}
            roots = partial(_roots_of, person)
            one = await stack.enter_async_context(fleet(tmp_path / f"{number}", entry, sharing=quick(), roots=roots))
            own.append((await one.call(f"{TOOL}pid", client=person, session_key="s")).text)
            await one.until(lambda: own[-1] in told())

    named = [told()[pid][0]["uri"] for pid in own]
    assert own[0] != own[1]
    assert named == [person.known_roots[0].as_uri() for person in with_roots]


# PIN-1
@pytest.mark.parametrize("kind", ["", "stateless"], ids=["handshake", "stateless"])
async def test_nothing_is_quarantined_when_share_is_switched_on(brokers: Brokers, tmp_path: Path, kind: str) -> None:
    async with sessions(tmp_path, kind, entries=1, share=False) as alone:
        before = alone.all[0].status("up")
        lock = (tmp_path / "session 0/state/goat.lock").read_bytes()
    async with sessions(tmp_path, kind, entries=1) as ours:
        await ours.all[0].call(f"{TOOL}echo")
        await ours.all[0].until(lambda: ours.all[0].status("up").catalog_at_s != before.catalog_at_s)
        after = ours.all[0].status("up")

    assert (after.reason_code, after.quarantined, after.waiting_pins) == ("", (), ())
    assert (after.tool_count, after.escaped_tools, after.version) == (
        before.tool_count,
        before.escaped_tools,
        before.version,
    )
    assert after.escaped_tools > 0
    assert (tmp_path / "session 0/state/goat.lock").read_bytes() == lock


@pytest.mark.parametrize(("kind", "is_shared"), [("stateless", True), ("", False)], ids=["stateless", "handshake"])
async def test_what_speaks_the_stateless_era_is_shared_if_the_settings_say_so(
    brokers: Brokers, tmp_path: Path, kind: str, is_shared: bool
) -> None:
    shown: list[bool] = []
    for _ in range(2):  # the first run finds out what it speaks
        async with sessions(tmp_path, kind, sharing=quick(setting="stateless"), share=[None, None], cwd="/") as ours:
            told = {(await one.call(f"{TOOL}pid")).text for one in ours.all}
            shown.append(len(told) == 1)

    assert shown == [False, is_shared]


def _read(file: Path) -> bytes:
    """Empty for what only root may see: a broker's environment is one of these."""
    try:
        return file.read_bytes()
    except PermissionError:
        return b""


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


async def test_a_secret_reaches_the_process_and_nobody_else(
    brokers: Brokers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "canary-0123456789-canary"
    monkeypatch.setenv("HELD_BY_THE_HOST", "another-canary-9876543210")
    async with sessions(tmp_path, env={"MY_SECRET": secret}, sharing=Sharing()) as ours:
        told = await ours.all[0].call(f"{TOOL}environment")
        broker = Path(f"/proc/{brokers.pid}")
        of_broker = [_read(broker / name) for name in ("environ", "cmdline")]
        shown = repr(ours.all[0].status("up"))

    assert told.text == secret
    assert not any(secret.encode() in text or b"another-canary" in text for text in of_broker)
    assert secret not in shown
    written = [path for path in _files(tmp_path) if path.name != "upstreams.json"]
    assert written
    assert not any(secret.encode() in path.read_bytes() for path in written)


async def test_without_a_folder_for_the_socket_each_session_has_its_own_and_says_why(
    brokers: Brokers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home/.cache").mkdir(parents=True)
    (tmp_path / "home/.cache/goat-mcp").write_text("a file")
    monkeypatch.setenv("XDG_RUNTIME_DIR", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    async with sessions(tmp_path) as ours:
        told = {(await one.call(f"{TOOL}pid")).text for one in ours.all}
        shown = ours.all[0].status("up").sharing

    assert len(told) == 2
    assert shown is not None
    assert not shown.is_shared
    assert "no folder for its socket" in shown.reason


_CONFINED = """
import ctypes, json, socket, sys
ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS, as every sandbox does
launch = {"command": "/bin/touch", "args": [sys.argv[2]], "environment": [], "cwd": "/", "account": ""}
with socket.socket(socket.AF_UNIX) as broker:
    broker.connect(sys.argv[1])
    broker.sendall(json.dumps({"launch": launch, "control": "c", "asks": False}).encode() + b"\\n")
    print(broker.makefile().readline())
"""


# R-PROC-7
@pytest.mark.parametrize("is_confined", [True, False])
async def test_what_runs_in_a_sandbox_has_the_broker_start_nothing(
    brokers: Brokers, tmp_path: Path, is_confined: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    brokers.start()
    monkeypatch.chdir(brokers.folder)  # the path of a socket may be too long
    script = _CONFINED if is_confined else _CONFINED.replace("ctypes.CDLL", "# ctypes.CDLL")

    done = await anyio.run_process([sys.executable, "-c", script, broker_name(), str(tmp_path / "made")])

    if is_confined:
        assert "refused" in json.loads(done.stdout)["params"]
        assert not (tmp_path / "made").exists()
    else:
        await anyio.to_thread.run_sync(until, (tmp_path / "made").exists)
