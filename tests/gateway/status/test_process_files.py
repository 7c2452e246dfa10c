"""What processes leave for others to read, and what becomes of files whose process is gone."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.gateway.status import gateway_status
from goat_mcp.gateway.status.process_files import ProcessFiles, StatusPublisher
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory
from goat_mcp.upstreams.status import UpstreamStatus
from goat_mcp.upstreams.upstream import Upstream
from tests.upstreams.fleet import server

pytestmark = pytest.mark.anyio


@pytest.fixture
def files(tmp_path: Path) -> ProcessFiles:
    return ProcessFiles(StateDirectory(tmp_path))


def a_dead_pid() -> int:
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait(30)
    return done.pid


def test_what_a_process_wrote_is_found_while_it_runs_and_is_private(files: ProcessFiles) -> None:
    files.write({"pid": os.getpid(), "version": "1"})

    (found,) = files.running()

    assert (found["pid"], found["version"]) == (os.getpid(), "1")
    assert stat.S_IMODE(files.own_path.stat().st_mode) == 0o600
    files.remove()
    assert files.running() == []


def test_a_file_of_a_dead_process_is_never_shown_and_is_cleared_away(files: ProcessFiles) -> None:
    pid = a_dead_pid()
    left = files.own_path.with_name(f"{pid}.json")
    left.write_text(json.dumps({"pid": pid, "process_started": 0}))
    half = files.own_path.with_name(f".{pid}.json.0123abcd")
    half.write_text("{")

    assert files.running() == []
    assert not left.exists() and not half.exists()


def test_a_number_that_another_process_has_by_now_is_not_taken_for_the_old_one(files: ProcessFiles) -> None:
    files.own_path.write_text(json.dumps({"pid": os.getpid(), "process_started": 1}))

    assert files.running() == []


@pytest.mark.parametrize("content", ["", "[]", "{", '{"pid": "x"}', "\xff"])
def test_a_file_that_holds_no_status_is_passed_over(files: ProcessFiles, content: str) -> None:
    files.own_path.write_bytes(content.encode("latin-1"))

    assert files.running() == []


WAIT_S = 60


@asynccontextmanager
async def published(folder: Path, entries: dict[str, Any]) -> AsyncGenerator[tuple[Gateway, ProcessFiles]]:
    file = folder / "upstreams.json"
    file.write_text(json.dumps({"mcpServers": entries}))
    settings = Settings.model_validate({"workspace": [folder], "upstreams": [file]})
    gateway = Gateway(settings, approval=Approval.HOST, state=StateDirectory(folder / "state"))
    files = ProcessFiles(gateway.state)
    publisher = StatusPublisher(gateway.status, files, gateway.announcements, gateway.telemetry.warning)
    async with gateway.running(), anyio.create_task_group() as group:
        group.start_soon(publisher.run)
        yield gateway, files
        group.cancel_scope.cancel()


async def until(files: ProcessFiles, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    with anyio.fail_after(WAIT_S):
        while True:
            found = await anyio.to_thread.run_sync(files.running)
            if found and holds(found[0]):
                return found[0]
            await anyio.sleep(0.05)


async def test_a_change_of_an_upstream_is_in_the_file_long_before_the_next_refresh(tmp_path: Path) -> None:
    # OBS-1
    async with published(tmp_path, {"raw": server("raw.py")}) as (gateway, files):
        before = await until(files, lambda document: True)
        await gateway.upstreams.first_list()
        after = await until(files, lambda document: document["upstreams"][0]["tool_count"] == 6)

    assert (before["upstreams"][0]["state"], after["upstreams"][0]["state"]) == ("idle", "ready")
    assert after["upstreams"][0]["version"] == "2025-11-25"
    assert after["upstreams"][0]["era"] == "handshake"


async def test_how_many_upstreams_stand_is_found_out_in_turns_and_once_and_written_in_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # ISO-1: a change of one of fifty upstreams must not delay the calls of the others by what all of them take.
    turn, done_in = 0, list[int]()
    made_by = set[int]()
    until_written: tuple[int, ...] = ()
    of_one, entry = Upstream.status, gateway_status.upstream_entry

    def status(upstream: Upstream) -> UpstreamStatus:
        done_in.append(turn)
        return of_one(upstream)

    def upstream_entry(*given: Any) -> dict[str, Any]:
        made_by.add(threading.get_ident())
        return entry(*given)

    async def count_turns() -> None:
        nonlocal turn
        while True:
            turn += 1
            await anyio.lowlevel.checkpoint()

    monkeypatch.setattr(Upstream, "status", status)
    monkeypatch.setattr(gateway_status, "upstream_entry", upstream_entry)
    entries = {f"idle{number}": {"command": sys.executable, "args": ["-c", ""]} for number in range(20)}
    async with anyio.create_task_group() as group:
        group.start_soon(count_turns)
        async with published(tmp_path, entries) as (_, files):
            await until(files, lambda found: len(found["upstreams"]) == 20)
            until_written = tuple(done_in)
        group.cancel_scope.cancel()

    assert len(until_written) == len(set(until_written)) == 20
    assert made_by and threading.get_ident() not in made_by


async def test_the_file_is_gone_after_a_clean_end(tmp_path: Path) -> None:
    async with published(tmp_path, {}) as (_, files):
        await until(files, lambda document: True)

    assert not files.own_path.exists()


async def test_a_secret_of_an_upstream_is_not_in_the_file(tmp_path: Path) -> None:
    # R-SECRET; OBS-1 "redacted stderr tail"
    secret = "canary-2b7e151628aed2a6"
    says = "import os, sys; print('token is', os.environ['API_TOKEN'], file=sys.stderr)"
    entry = {"command": "python3", "args": ["-c", says], "env": {"API_TOKEN": secret}}
    async with published(tmp_path, {"leaky": entry}) as (gateway, files):
        await gateway.upstreams.first_list()
        document = await until(files, lambda found: found["upstreams"][0]["reason_code"] not in ("", "starting"))

    assert document["upstreams"][0]["reason_code"] == "start_failed"
    assert "token is" in json.dumps(document)
    assert secret not in json.dumps(document)
