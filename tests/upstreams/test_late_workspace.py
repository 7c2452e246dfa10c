"""Processes that work in the workspace, where that is known, or is another, only after they were started. WSP-2."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.upstreams.retry_policy import RetryLimits
from goat_mcp.upstreams.status import ReasonCode, UpstreamState
from tests.e2e.conftest import fill
from tests.e2e.upstream_launch import ERAS, child
from tests.upstreams.fleet import QUICK, SERVERS, Fleet, fleet

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

NEVER_AGAIN = replace(QUICK, retry=RetryLimits(backoff_min_s=1e6, backoff_max_s=1e6, probe_after_s=1e6, open_after=1))
"""What has failed is not tried again by itself while a test runs."""
MAX_WAIT_S = 60.0


ONLY_THERE = """
import os, runpy, sys
if not os.path.exists("there"):
    sys.exit(3)
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


class Roots:
    """The workspace, as it is now."""

    def __init__(self, *roots: Path) -> None:
        self.now: Sequence[Path] = roots

    def __call__(self, client_has_some: bool) -> Sequence[Path]:
        return self.now


async def folder(running: Fleet, name: str = "up", **ctx: Any) -> str:
    return (await running.call(f"mcp__{name}__folder", **ctx)).text.split(" ")[0]


async def test_what_waits_for_a_workspace_is_started_when_there_is_one_and_not_after_a_pause(tmp_path: Path) -> None:
    project = fill(tmp_path / "project").resolve()
    roots = Roots()

    async with fleet(
        tmp_path, {"up": child("asking", ERAS["old"], cwd="${workspace}")}, limits=NEVER_AGAIN, roots=roots
    ) as running:
        before = running.status("up")
        roots.now = [project]
        running.upstreams.workspace_changed()
        await running.upstreams.first_list(MAX_WAIT_S)
        worked_in = await folder(running)

    assert (before.state, before.reason_code) == (UpstreamState.FAILED, ReasonCode.NO_WORKSPACE)
    assert before.next_try_s is None
    assert worked_in == str(project)


async def test_one_that_cannot_run_where_we_were_started_is_tried_at_once_in_the_workspace(tmp_path: Path) -> None:
    project = fill(tmp_path / "project").resolve()
    (project / "there").touch()
    entry = {"command": sys.executable, "args": ["-c", ONLY_THERE, str(SERVERS / "good.py")]}
    roots = Roots()

    async with fleet(tmp_path, {"up": entry}, limits=NEVER_AGAIN, roots=roots) as running:
        before = running.status("up").reason_code
        roots.now = [project]
        running.upstreams.workspace_changed()
        await running.until(lambda: running.status("up").tool_count > 0, MAX_WAIT_S)

    assert before is ReasonCode.START_FAILED


async def test_without_a_workspace_each_call_is_refused_at_once_and_nothing_is_tried_meanwhile(tmp_path: Path) -> None:
    project = fill(tmp_path / "project").resolve()
    roots = Roots(project)

    async with fleet(
        tmp_path, {"up": child("asking", ERAS["old"], cwd="${workspace}")}, limits=NEVER_AGAIN, roots=roots
    ) as running:
        worked_in = await folder(running)
        roots.now = []
        refused = [await running.failing("mcp__up__folder", principal=f"p{number}") for number in range(3)]
        roots.now = [project]
        again = await folder(running, principal="p0")

    assert [worked_in, again] == [str(project), str(project)]
    assert [(error.facts or {}).get("reason") for error in refused] == [ReasonCode.NO_WORKSPACE] * 3


async def test_a_workspace_whose_first_folder_is_the_same_changes_no_process(tmp_path: Path) -> None:
    first, second = (fill(tmp_path / name).resolve() for name in ("first", "second"))
    roots = Roots(first)

    async with fleet(
        tmp_path,
        {"up": child("asking", ERAS["old"]), "there": child("asking", ERAS["old"], cwd=str(second))},
        roots=roots,
    ) as running:
        before = [(await running.call(f"mcp__{name}__folder")).text for name in ("up", "there")]
        roots.now = [first, second]
        running.upstreams.workspace_changed()
        after = [(await running.call(f"mcp__{name}__folder")).text for name in ("up", "there")]

    assert before == after
