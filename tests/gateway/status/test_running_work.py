"""What runs is published while it runs, and the user can end it from any process. A short call leaves no trace."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from goat_mcp.calls.audit import AuditLog
from goat_mcp.calls.permissions.mode import Approval, Mode
from goat_mcp.core.context import ToolContext
from goat_mcp.core.result import ToolResult
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.gateway.status.process_files import ProcessFiles
from goat_mcp.gateway.status.requests import RequestKind, UserRequest
from goat_mcp.gateway.status.running_work import RunningWork
from goat_mcp.server import run
from goat_mcp.server.run import publish_status
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory
from tests.calls.test_pipeline import pipeline_over
from tests.tool_doubles import FakeTool, fake
from tests.upstreams.fleet import server

pytestmark = pytest.mark.anyio

WAIT_S = 20
LONG_AGO_S = 5.0


def ctx(call_id: str = "0123456789abcdef", **more: Any) -> ToolContext:
    """Of a call that has run for a while."""
    return ToolContext(call_id=call_id, started_at_s=time.monotonic() - LONG_AGO_S, **more)


@asynccontextmanager
async def running_call(
    folder: Path, tool: FakeTool, context: ToolContext, results: list[ToolResult]
) -> AsyncGenerator[RunningWork]:
    audit = AuditLog(folder / "audit.jsonl")
    pipeline = pipeline_over(folder, tool, audit=audit)

    async def call() -> None:
        results.append(await pipeline.call(tool.spec.name, {}, context))

    async with anyio.create_task_group() as group:
        group.start_soon(call)
        with anyio.fail_after(WAIT_S):
            await tool.started.wait()
        yield RunningWork(pipeline.slots, lambda: None, audit)
        group.cancel_scope.cancel()


async def test_a_call_is_shown_with_who_called_and_the_progress_it_reported_last(tmp_path: Path) -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    async def progress(done: float, total: float | None = None, message: str | None = None, **_: object) -> None:
        heard.append((done, total, message))

    tool = Reporting(fake("Read").spec, release=anyio.Event())
    context = ctx(principal="ada", client_name="editor 1.2", progress=progress, wants_progress=True)
    async with running_call(tmp_path, tool, context, []) as running:
        before = running.mark()
        (shown,) = running.shown()
        await tool.contexts[0].progress(4, 10, "four of ten")
        (later,) = running.shown()
        after = running.mark()

    assert shown["started_s"] == pytest.approx(time.time() - LONG_AGO_S, abs=2)
    assert {name: shown[name] for name in ("kind", "id", "tool", "client", "principal")} == {
        "kind": "call",
        "id": "0123456789abcdef",
        "tool": "Read",
        "client": "editor 1.2",
        "principal": "ada",
    }
    assert later["progress"] == {"done": 4, "total": 10, "message": "four of ten"}
    assert before != after
    assert (4, 10, "four of ten") in heard


@dataclass(eq=False)
class Reporting(FakeTool):
    """Keeps the context of its calls."""

    contexts: list[ToolContext] = field(default_factory=list[ToolContext])

    async def execute(self, input: Any, ctx: ToolContext) -> ToolResult:
        self.contexts.append(ctx)
        return await super().execute(input, ctx)


async def test_a_call_that_has_just_begun_and_one_that_has_ended_are_not_shown(tmp_path: Path) -> None:
    tool = fake("Read", release=anyio.Event())
    results: list[ToolResult] = []
    async with running_call(tmp_path, tool, ToolContext(call_id="new"), results) as running:
        short, mark = running.shown(), running.mark()
    tool = fake("Read", release=(release := anyio.Event()))
    async with running_call(tmp_path, tool, ctx(), results) as running:
        at_work = running.shown()
        release.set()
        await anyio.wait_all_tasks_blocked()
        ended = running.shown()

    assert (short, len(at_work), ended) == ([], 1, [])
    assert mark == (frozenset(), frozenset())


async def test_a_call_that_the_user_ends_says_so_and_the_record_says_who_did_it(tmp_path: Path) -> None:
    results: list[ToolResult] = []
    async with running_call(tmp_path, fake("Read", release=anyio.Event()), ctx(principal="ada"), results) as running:
        cancelled = await running.cancel("0123456789abcdef")
        await anyio.wait_all_tasks_blocked()

    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    decided = next(line for line in lines if line["tool"] == "cancel" and line["event"] == "decision")
    outcome = next(line for line in lines if line["tool"] == "Read" and line["event"] == "outcome")
    assert cancelled is not None and cancelled["tool"] == "Read"
    assert results[0].error_code == "E_CANCELLED"
    assert "the user cancelled this call" in results[0].text
    assert (decided["by"], decided["principal"]) == ("user", "ada")
    assert outcome["error_code"] == "E_CANCELLED"


async def test_an_unknown_id_ends_nothing(tmp_path: Path) -> None:
    results: list[ToolResult] = []
    async with running_call(tmp_path, fake("Read", release=anyio.Event()), ctx(), results) as running:
        found = await running.cancel("another")
        still = running.shown()

    assert found is None and len(still) == 1


async def test_a_client_that_goes_away_ends_its_call_as_before(tmp_path: Path) -> None:
    """A cancelled scope outside is none of the user's doing: nobody gets an answer."""
    results: list[ToolResult] = []
    async with running_call(tmp_path, fake("Read", release=anyio.Event()), ctx(), results):
        pass

    assert results == []


@asynccontextmanager
async def serving(folder: Path, entries: dict[str, Any] | None = None) -> AsyncGenerator[tuple[Gateway, ProcessFiles]]:
    file = folder / "upstreams.json"
    file.write_text(json.dumps({"mcpServers": entries or {}}))
    settings = Settings.model_validate(
        {"workspace": [folder], "upstreams": [file], "mode": Mode.BYPASS, "sandbox": "off"}
    )
    gateway = Gateway(settings, approval=Approval.DENY, state=StateDirectory(folder / "state"))
    gateway.first_list.set()
    async with gateway.running(), anyio.create_task_group() as group:
        group.start_soon(publish_status, gateway)
        yield gateway, ProcessFiles(gateway.state)
        group.cancel_scope.cancel()


async def test_the_status_waits_for_a_first_list_that_is_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = anyio.Event()

    def load(name: str) -> None:
        anyio.from_thread.run_sync(loaded.set)

    monkeypatch.setattr(run, "FIRST_WRITE_S", 0.01)
    monkeypatch.setattr(run, "AFTER_THE_LIST_S", 0.0)
    monkeypatch.setattr(run, "import_module", load)
    gateway = Gateway(Settings(workspace=(tmp_path,)), approval=Approval.DENY, state=StateDirectory(tmp_path / "state"))
    await gateway.upstreams.first_list()
    async with anyio.create_task_group() as group:
        group.start_soon(publish_status, gateway)
        with anyio.move_on_after(0.3):
            await loaded.wait()
        assert not loaded.is_set()

        gateway.first_list.set()
        with anyio.fail_after(WAIT_S):
            await loaded.wait()
        group.cancel_scope.cancel()


async def until(files: ProcessFiles, holds: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
    with anyio.fail_after(WAIT_S):
        while True:
            found = await anyio.to_thread.run_sync(files.running)
            if found and holds(found[0]["running"]):
                return found[0]["running"]
            await anyio.sleep(0.05)


async def answered(request: UserRequest) -> dict[str, Any]:
    with anyio.fail_after(WAIT_S):
        while True:
            answers = await anyio.to_thread.run_sync(request.answers)
            if answers:
                return answers[0]
            await anyio.sleep(0.01)


async def test_a_long_command_is_in_the_status_and_a_request_ends_it_within_half_a_second(tmp_path: Path) -> None:
    async with serving(tmp_path) as (gateway, files):
        context = ToolContext(call_id="fedcba9876543210", client_name="editor", wants_progress=True)
        call = asyncio.create_task(gateway.call("Bash", {"command": "sleep 300"}, context))
        (shown,) = await until(files, bool)
        for_clients = gateway.status.document()
        began_s = time.monotonic()
        request = UserRequest(gateway.state, RequestKind.CANCEL, shown["id"])
        answer = await answered(request)
        took_s = time.monotonic() - began_s
        result = await call
        request.end()
        after = await until(files, lambda found: not found)

    assert (shown["tool"], shown["client"], shown["kind"]) == ("Bash", "editor", "call")
    assert answer == {"pid": os.getpid(), "state": "cancelled"}
    assert took_s < 2  # 0.5 s and what a busy machine adds
    assert result.error_code == "E_CANCELLED"
    assert after == []
    assert "running" not in for_clients  # a client reads it as goat://status
    assert list((gateway.state.path / "requests").iterdir()) == []
    gateway.audit.close()
    with sqlite3.connect(gateway.state.path / "calls.db") as calls:
        rows = calls.execute("SELECT tool, decided_by, error_code FROM calls ORDER BY at_s").fetchall()
    assert [row[0] for row in rows] == ["Bash", "cancel"]
    assert (rows[0][2], rows[1][1]) == ("E_CANCELLED", "user")


async def test_a_background_task_is_shown_and_can_be_ended(tmp_path: Path) -> None:
    async with serving(tmp_path) as (gateway, files):
        context = ToolContext(call_id="1")
        await gateway.call("Bash", {"command": "sleep 300", "run_in_background": True}, context)
        (shown,) = await until(files, bool)
        request = UserRequest(gateway.state, RequestKind.CANCEL, shown["id"])
        answer = await answered(request)
        after = await until(files, lambda found: not found)

    assert (shown["kind"], shown["title"]) == ("shell", "sleep 300")
    assert answer["state"] == "cancelled"
    assert after == []


async def test_what_another_process_runs_is_unknown_here(tmp_path: Path) -> None:
    async with serving(tmp_path) as (gateway, _):
        answer = await answered(UserRequest(gateway.state, RequestKind.CANCEL, "nobody-has-this"))

    assert answer["state"] == "unknown"


async def test_an_upstream_is_stopped_and_starts_again_at_its_next_use(tmp_path: Path) -> None:
    async with serving(tmp_path, {"raw": server("raw.py")}) as (gateway, _):
        await gateway.upstreams.first_list()
        before = gateway.upstreams.status()[0]
        answer = await answered(UserRequest(gateway.state, RequestKind.STOP, "raw"))
        stopped = gateway.upstreams.status()[0]
        await gateway.upstreams.until_started("mcp__raw__ping")
        again = gateway.upstreams.status()[0]

    assert (before.state, answer["state"], stopped.state) == ("ready", "idle", "idle")
    assert stopped.tool_count == before.tool_count
    assert again.state in ("ready", "idle")


async def test_a_request_of_an_unknown_kind_or_an_old_one_is_passed_over(tmp_path: Path) -> None:
    async with serving(tmp_path) as (gateway, _):
        folder = gateway.state.folder("requests")
        (folder / "aa.json").write_text(json.dumps({"kind": "shutdown", "name": "x", "at_s": time.time()}))
        (folder / "bb.json").write_text(json.dumps({"kind": "cancel", "name": "x", "at_s": time.time() - 120}))
        (folder / "cc.json").write_text("[]")
        await answered(UserRequest(gateway.state, RequestKind.CANCEL, "x"))
        answers = sorted(file.name.partition(".")[0] for file in folder.iterdir() if file.name.count(".") == 2)

    assert len(answers) == 1 and answers[0] not in ("aa", "bb", "cc")
