"""An upstream that speaks both eras: each client's calls are made in the client's own. ERA-2b."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from goat_mcp.core.calling_client import ClientRequest
from goat_mcp.core.context import ToolContext
from goat_mcp.state.directory import StateDirectory
from goat_mcp.upstreams.cache.warm_catalog import WarmCatalog
from goat_mcp.upstreams.config.entry import UpstreamConfig
from goat_mcp.upstreams.eras import ConnectionEra, Era, UpstreamEras
from goat_mcp.upstreams.faults import StartFailure
from goat_mcp.upstreams.status import ReasonCode
from tests.e2e.test_upstreams_that_ask import ALL
from tests.e2e.upstream_launch import child, listening
from tests.upstreams.calls.test_multi_round import Person
from tests.upstreams.fleet import Fleet, fleet, load

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]
TRANSPORTS = ("stdio", "http")
every_transport = pytest.mark.parametrize("transport", TRANSPORTS)
OLD, NEW = "2025-11-25", "2026-07-28"


@dataclass(eq=False)
class Counted(Person):
    """Fills in every form; says how many questions came in each message to it."""

    questions: list[list[str]] = field(default_factory=list[list[str]])

    async def ask(self, requests: Mapping[str, ClientRequest]) -> Mapping[str, dict[str, Any]]:
        self.questions.append(sorted(requests))
        return await super().ask(requests)


def person(version: str) -> Counted:
    return Counted(protocol_version=version, is_stateless=version == NEW)


@contextmanager
def entry(transport: str, era: str = "both") -> Generator[dict[str, Any]]:
    if transport == "stdio":
        yield child("asking", era, allow=ALL)
        return
    with listening("asking", era) as url:
        yield {"url": url, "allow": ALL}


async def booked(running: Fleet, client: Counted, session: str) -> str:
    result = await running.call("mcp__up__book", client=client, session_key=session)
    return result.text


def eras_on_record(folder: Path, entries: Mapping[str, Any]) -> Mapping[str, bool]:
    (config,) = load(folder, entries).configs
    return WarmCatalog(StateDirectory(folder / "state")).eras(config.server, config.fingerprint)


@every_transport
async def test_a_tool_that_asks_does_so_in_the_way_of_each_clients_era_at_the_same_time(
    tmp_path: Path, transport: str
) -> None:
    """By a request in the handshake, whose question has no key of the upstream's; by an answer in 2026-07-28."""
    older, newer = person(OLD), person(NEW)
    said: dict[str, list[str]] = {"older": [], "newer": []}

    with entry(transport) as up:
        async with fleet(tmp_path, {"up": up}) as running:

            async def three(name: str, client: Counted) -> None:
                for _ in range(3):
                    said[name].append(await booked(running, client, name))

            async with anyio.create_task_group() as group:
                group.start_soon(three, "older", older)
                group.start_soon(three, "newer", newer)
            status = running.status("up")
            known = eras_on_record(tmp_path, {"up": up})

    assert said["older"] == [f"accept {{'day': {number}}}" for number in (1, 2, 3)]
    assert said["newer"] == [f"accept {{'day': {number}}}, state state of book" for number in (1, 2, 3)]
    assert (older.questions, newer.questions) == ([["question"]] * 3, [["day"]] * 3)
    assert known == {"handshake": True, "stateless": True}
    # What is listed and counted is the upstream's, and not an era's.
    assert len([status for status in running.upstreams.status() if status.name == "up"]) == 1
    assert (status.tool_count, status.quarantined, status.waiting_pins) == (14, (), ())


@every_transport
@pytest.mark.parametrize(("era", "version"), [("legacy", NEW), ("2026-07-28", OLD)])
async def test_one_that_speaks_one_era_is_bridged_and_is_not_tried_in_the_other_again(
    tmp_path: Path, transport: str, era: str, version: str
) -> None:
    client = person(version)
    with entry(transport, era) as up:
        async with fleet(tmp_path, {"up": up}) as running:
            first = await booked(running, client, "s")
            again = await booked(running, client, "s")
            tried = eras_on_record(tmp_path, {"up": up})

    said_so = "" if era == "legacy" else ", state state of book"
    assert [first, again] == [f"accept {{'day': 1}}{said_so}", f"accept {{'day': 2}}{said_so}"]
    assert tried == {"handshake": era == "legacy", "stateless": era != "legacy"}


async def pid_of(running: Fleet, version: str) -> str:
    result = await running.call("mcp__up__folder", client=person(version), session_key=version)
    return result.text.split()[-1]


@pytest.mark.parametrize("first", [OLD, NEW])
async def test_what_a_client_lists_is_started_in_its_era_and_a_client_of_the_other_has_a_process_beside_it(
    tmp_path: Path, first: str
) -> None:
    second = NEW if first == OLD else OLD
    with entry("stdio") as up:
        async with fleet(tmp_path, {"up": up}, first_list=False) as running:
            ctx = ToolContext(call_id="l", session_key=first, client=person(first))
            await running.upstreams.first_list(20, ctx=ctx)
            listed_in, since_s = running.status("up").version, running.status("up").since_s
            pids = [await pid_of(running, version) for version in (first, second, first, second)]
            version, now_s = running.status("up").version, running.status("up").since_s

    # The connection that was listed is the one that is used: it was not made again.
    assert (listed_in, version) == (first, first)
    assert now_s > since_s
    assert (pids[0], pids[1]) == (pids[2], pids[3])
    assert pids[0] != pids[1]


@pytest.mark.parametrize("version", [OLD, NEW])
async def test_what_was_started_before_any_client_came_is_made_again_in_the_era_of_the_first(
    tmp_path: Path, version: str
) -> None:
    """So a host of the older era has one process, also where an entry is started unasked."""
    with entry("stdio") as up:
        async with fleet(tmp_path, {"up": {**up, "start": "eager"}}) as running:
            before = running.status("up").version
            text = await booked(running, person(version), "s")
            after = running.status("up").version

    assert (before, after) == (NEW, version)
    assert ("state of book" in text) == (version == NEW)


async def test_the_next_start_knows_the_eras_and_one_that_has_lost_one_is_bridged(tmp_path: Path) -> None:
    """A verdict that proves wrong is dropped, and the call that finds out does not fail."""
    speaks = tmp_path / "era"
    known: list[Mapping[str, bool]] = []
    said: list[str] = []
    with entry("stdio", f"@{speaks}") as up:
        for era in ("both", NEW, "legacy"):
            speaks.write_text(era)
            async with fleet(tmp_path, {"up": up}, first_list=False) as running:
                if not known:
                    await running.upstreams.first_list(20)
                for version in (OLD, NEW):
                    said.append(await booked(running, person(version), version))
                known.append(eras_on_record(tmp_path, {"up": up}))

    asked, answered = "accept {'day': 1}", "accept {'day': 1}, state state of book"
    assert said == [asked, answered, answered, answered, asked, asked]
    assert known == [
        {"handshake": True, "stateless": True},
        {"handshake": False, "stateless": True},
        {"handshake": True, "stateless": False},
    ]


def eras(folder: Path) -> UpstreamEras:
    config = UpstreamConfig(
        name="up", server="up", target=next(iter(load(folder, {"up": {"command": "x"}}).configs)).target
    )
    return UpstreamEras(config, WarmCatalog(StateDirectory(folder / "state")))


@pytest.mark.parametrize(
    ("reason", "is_known", "given_up"),
    [
        (ReasonCode.HANDSHAKE_FAILED, True, True),
        (ReasonCode.START_FAILED, True, True),
        (ReasonCode.START_TIMEOUT, True, True),
        (ReasonCode.START_FAILED, False, True),
        (ReasonCode.START_TIMEOUT, False, False),
        (ReasonCode.UNREACHABLE, True, False),
        (ReasonCode.AUTH_REQUIRED, True, False),
    ],
)
def test_a_failed_handshake_is_no_failed_call_where_the_other_era_may_work(
    tmp_path: Path, reason: ReasonCode, is_known: bool, given_up: bool
) -> None:
    of_all = eras(tmp_path)
    of_all.speaks = {Era.STATELESS: True} if is_known else {}
    one = ConnectionEra(of_all)
    one.want(Era.HANDSHAKE)

    assert one.first(None) == OLD
    assert one.is_given_up(StartFailure(reason, "x")) is given_up
    if given_up:
        assert one.first(None) == (NEW if is_known else None)
        # It fails in both: now it is down, and the next try begins anew.
        assert not one.is_given_up(StartFailure(ReasonCode.START_FAILED, "x"))
        assert one.first(None) == OLD


def test_a_trial_of_the_handshake_leaves_a_call_the_time_for_the_era_that_works(tmp_path: Path) -> None:
    of_all = eras(tmp_path)
    of_all.speaks = {Era.STATELESS: True}
    one = ConnectionEra(of_all)
    one.want(Era.HANDSHAKE)
    one.first(None)

    assert one.patience_s(60, 10) == 5
    of_all.speaks = {Era.STATELESS: True, Era.HANDSHAKE: True}
    assert one.patience_s(60, 10) == 60
