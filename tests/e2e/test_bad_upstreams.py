"""Upstreams that hang, crash or print garbage: everything else goes on as if they were not there (ISO-1)."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.e2e.conftest import fill, ours, upstream_file
from tests.e2e.goat import Launch
from tests.e2e.test_clients import BUILT_IN
from tests.e2e.wire import Wire, text_of

pytestmark = pytest.mark.e2e

HEALTHY = [
    f"mcp__{server}__{tool}" for server in ("healthy", "garbage") for tool in ("echo", "pid", "nap", "refuse", "grow")
]


@pytest.fixture(scope="module")
def launch_with_bad_ones(tmp_path_factory: pytest.TempPathFactory) -> Launch:
    folder = tmp_path_factory.mktemp("bad")
    file = upstream_file(
        folder / "upstreams.json",
        hanging=ours("plain", "hangs"),
        crashing=ours("plain", "crashes"),
        missing={"command": str(folder / "no-such-program")},
        unreachable={"url": "http://127.0.0.1:9/mcp"},
        healthy=ours("plain"),
        garbage=ours("plain", "garbage"),
        stuck=ours("plain", "hangs-in-calls"),
        fragile=ours("plain", "crashes-in-calls"),
    )
    return Launch(folder, fill(folder / "workspace"), ("--upstreams", str(file)))


@pytest.fixture(scope="module")
def wire(launch_with_bad_ones: Launch) -> Generator[Wire]:
    launch = launch_with_bad_ones
    with Wire(launch.command, launch.environment, launch.workspace, launch.folder / "stderr") as wire:
        wire.handshake()
        yield wire


@pytest.fixture(scope="module")
def listed(wire: Wire) -> list[str]:
    """The names of the first list that has one of each that is well: on a busy machine that may be a later one."""
    wire.request("tools/list")
    # The list waits 3 s for those never seen before (LIF-2), and not the 30 s that one of them has to start.
    assert state_of(wire, "hanging") == "starting", "the list waited for one that hangs"
    return wire.listed_with("mcp__healthy__echo", "mcp__garbage__echo", "mcp__stuck__echo", "mcp__fragile__echo")


def state_of(wire: Wire, upstream: str) -> str:
    (content,) = wire.request("resources/read", {"uri": "goat://status"})["result"]["contents"]
    return next(entry["state"] for entry in json.loads(content["text"])["upstreams"] if entry["name"] == upstream)


# LIF-2
def test_the_first_list_comes_in_time_and_has_all_that_is_well(listed: list[str]) -> None:
    assert sorted(set(listed) & {*BUILT_IN, *HEALTHY}) == sorted([*BUILT_IN, *HEALTHY])
    assert [name for name in listed if name.split("__")[1:2] in (["hanging"], ["crashing"], ["missing"])] == []


def test_a_call_that_never_ends_delays_no_other(wire: Wire, listed: list[str]) -> None:
    never = wire.start("tools/call", {"name": "mcp__stuck__echo", "arguments": {"text": "x"}})

    answers = [
        wire.text("mcp__healthy__echo", {"text": "hi"}),
        wire.text("mcp__garbage__echo", {"text": "ho"}),
        wire.text("Bash", {"command": "echo works"}),
        wire.text("Glob", {"pattern": "*.md"}),
    ]
    hangs_still = not wire.is_answered(never)
    wire.notify("notifications/cancelled", {"requestId": never, "reason": "the user lost patience"})

    assert answers == ["hi", "ho", "works", str(Path(wire_workspace(wire)) / "notes.md")]
    assert hangs_still, "the others were answered once its time was up"
    assert wire.text("mcp__healthy__echo", {"text": "after"}) == "after"


# ISO-1, R-LIMIT-1
def test_more_calls_that_never_end_than_run_at_a_time_keep_no_other_from_running(wire: Wire, listed: list[str]) -> None:
    stuck = [wire.start("tools/call", {"name": "mcp__stuck__echo", "arguments": {"text": "x"}}) for _ in range(40)]

    answers = [wire.text("mcp__healthy__echo", {"text": "hi"}), wire.text("Bash", {"command": "echo works"})]
    first_hangs_still = not wire.is_answered(stuck[0])
    for never in stuck:
        wire.notify("notifications/cancelled", {"requestId": never})

    assert answers == ["hi", "works"]
    assert first_hangs_still, "a place was free once its time was up"


def test_a_server_that_dies_in_a_call_fails_that_call_and_works_again(wire: Wire, listed: list[str]) -> None:
    died = wire.call("mcp__fragile__echo", {"text": "x"})
    listed_again = wire.request("tools/list")["result"]["tools"]

    assert died["isError"] is True
    assert "fragile" in text_of(died)
    assert "code 4" in text_of(died) or "status 4" in text_of(died), "its death was not noticed, only its silence"
    assert "mcp__fragile__echo" in [tool["name"] for tool in listed_again]
    assert wire.text("mcp__healthy__echo", {"text": "hi"}) == "hi"


# REL-6
def test_an_error_of_a_server_keeps_code_message_and_data(wire: Wire, listed: list[str]) -> None:
    refused = wire.request("tools/call", {"name": "mcp__healthy__refuse", "arguments": {}})

    assert refused["error"] == {"code": -32050, "message": "plain refuses", "data": {"why": ["asked", None]}}


def test_stdout_carried_nothing_but_messages(wire: Wire, listed: list[str]) -> None:
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in wire.lines)


def wire_workspace(wire: Wire) -> str:
    return wire.text("Bash", {"command": "pwd"})
