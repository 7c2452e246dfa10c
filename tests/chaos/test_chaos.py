"""Upstreams that hang, crash, flood, lie and change, beside two healthy ones: those never notice, and nothing grows.

Each test run has one short storm per era; `GOAT_TESTS_FULL=1` has the ten long ones of the contract. How much the
healthy ones are delayed is measured by `python -m bench.run chaos`: a time is nothing to assert here.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from tests.chaos.neighbourhood import BAD, HEALTHY, HEALTHY_WEB, entries, web
from tests.chaos.storm import MIB, PATIENCE_S, SAMPLE_S, SETTLE_S, Storm, status_of
from tests.e2e.conftest import UNASKED, fill, upstream_file
from tests.e2e.goat import Launch, connected
from tests.e2e.processes import Seen, descendants, left_after
from tests.repetitions import times

pytestmark = [
    pytest.mark.real_processes,
    pytest.mark.matrix,
    pytest.mark.anyio,
    pytest.mark.e2e,
    pytest.mark.chaos,
    pytest.mark.xdist_group("chaos"),
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]

RUNS = times(1, in_full_run=10)
TURNS = times(1, in_full_run=2)
"""How often each bad one has been bad before the storm counts as one."""
FOR_S = times(1, in_full_run=30)
IS_LONG = bool(times(0, in_full_run=1))
"""A bad one may be starting, or starting again, when a short storm on a busy machine is over: what it is and what was
counted of it is looked at after long ones."""
MAX_GROWTH_BYTES = 48 * MIB
"""After warm-up: three of the largest frames that are taken (R-UP-2) may be under way more than before."""
MAX_LEFT_BYTES = 160 * MIB
"""What the process may have more when the storm is over than when it came: connections, catalogs, the library that
checks arguments (20 MiB, loaded with the first upstream call), and a heap's holes: usually 57 MiB, at most 109."""
MAX_MORE_DESCRIPTORS = 12
"""A process that is being started again has four, a connection over HTTP one."""

TROUBLE = {
    "crashes-at-start": {"start_failed"},
    "crash-loop": {"lost", "start_failed"},
    "crashes-in-calls": {"lost", ""},
    "changing": {"quarantined"},
}
"""The reason codes of those whose state is wrong. Others work as connections go; what is wrong with them is counted,
or told to each caller."""
COUNTED = {
    "junk": "junk_lines",
    "broken-json": "junk_lines",
    "wrong-ids": "junk_lines",
    "huge-result": "oversized_frames",
    "huge-line": "oversized_frames",
    "lies": "output_mismatches",
    "logs": "dropped_logs",
}
COUNTS_NOTHING = {"legacy": [], "2026-07-28": ["logs"]}
"""Clients of the newer era ask for log messages with each request, and these do not: nothing is there to be dropped."""
TOLD = {
    "hangs-in-calls": "did not answer within",
    "drip": "did not answer within",
    "progress": "did not answer within",
    "deaf": "did not answer within",
    "wrong-ids": "did not answer within",
    "web-hangs-in-calls": "did not answer within",
    "web-drip": "did not answer within",
    "web-drops": "was lost during the call",
    "web-status-500": "HTTP 500",
    "web-huge-result": "larger than",
    "broken-json": "is not JSON",
    "huge-result": "larger than",
}


def goat_of(folder: Path) -> int:
    (goat,) = (seen.pid for seen in descendants(os.getpid()) if f"goat_mcp serve --workspace {folder}" in seen.command)
    return goat


async def ignore(params: object) -> None:
    """A client that wants log messages must say who takes them."""


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
@pytest.mark.parametrize("run", range(RUNS))
async def test_the_healthy_ones_make_no_error_beside_all_the_bad_ones_and_nothing_grows(
    tmp_path: Path, mode: str, run: int
) -> None:
    # ISO-1, ISO-3, ISO-4, LIF-8, R-UP-1 to R-UP-4
    (tmp_path / "tmp").mkdir()
    seen: set[Seen] = set()
    with web() as port:
        file = upstream_file(tmp_path / "upstreams.json", **entries(port, tmp_path))
        options = (*UNASKED, "--upstreams", str(file), "--set", "limits.calls_per_s=0")
        launch = Launch(tmp_path, fill(tmp_path / "ws"), options, {"TMPDIR": str(tmp_path / "tmp")})
        async with connected(launch, mode, logging_callback=ignore, read_timeout_seconds=PATIENCE_S) as client:
            storm = Storm(client, goat_of(tmp_path))
            listed = {tool.name for tool in (await client.list_tools()).tools}
            await _want_logs(client, mode)
            await storm.rage(TURNS, FOR_S)
            left_bytes = await storm.left_bytes(MAX_LEFT_BYTES)
            seen.update(descendants(storm.pid))
            status = await status_of(client)
            if IS_LONG:
                await _each_was_in_trouble(client)
        left = left_after(seen, str(tmp_path), 30)

    assert {f"mcp__{HEALTHY}__t", f"mcp__{HEALTHY_WEB}__t"} <= listed
    assert storm.wrong == []
    assert [(status[name]["state"], status[name]["reason_code"]) for name in (HEALTHY, HEALTHY_WEB)] == [
        ("ready", "")
    ] * 2
    if IS_LONG:
        _assert_each_was_bad(storm, status, mode)
    assert set(BAD) <= set(status)
    assert storm.peak_bytes - storm.warm_bytes < MAX_GROWTH_BYTES, (storm.warm_bytes // MIB, storm.peak_bytes // MIB)
    assert left_bytes < MAX_LEFT_BYTES, (storm.first_bytes // MIB, left_bytes // MIB)
    assert storm.descriptors - storm.warm_descriptors <= MAX_MORE_DESCRIPTORS
    assert left == []
    assert list((tmp_path / "tmp").iterdir()) == []
    assert [path for path in (tmp_path / "state").rglob("*") if "tmp" in path.suffix] == []


def _assert_each_was_bad(storm: Storm, status: dict[str, dict[str, Any]], mode: str) -> None:
    assert [name for name, counter in COUNTED.items() if not status[name][counter]] == COUNTS_NOTHING[mode]
    assert {name: storm.of_bad_ones[name] for name, words in TOLD.items() if not _was_told(storm, name, words)} == {}


async def _each_was_in_trouble(client: Client) -> None:
    """What crashes again and again is at times alive: each is looked at until it was seen with what is wrong."""
    not_seen = dict(TROUBLE)
    with anyio.fail_after(SETTLE_S):
        while not_seen:
            status = await status_of(client)
            not_seen = {name: codes for name, codes in not_seen.items() if status[name]["reason_code"] not in codes}
            await anyio.sleep(SAMPLE_S)


async def _want_logs(client: Client, mode: str) -> None:
    if mode == "legacy":
        await client.set_logging_level("debug")  # pyright: ignore[reportDeprecated]  # this is the older era


def _was_told(storm: Storm, name: str, words: str) -> bool:
    return any(words in outcome for outcome in storm.of_bad_ones[name])
