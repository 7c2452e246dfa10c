"""The web page over 10,000 recorded calls: each view, and searches that find little, beside a bare Starlette answer."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import anyio
import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from bench.report import Bar, Row
from bench.subjects.permissions import five_hundred_rules
from bench.timing import interleaved_bursts_ms, medians
from bench.workbench import Workbench
from goat_mcp.calls.approvals.store import ApprovalStore
from goat_mcp.calls.audit import AuditLog
from goat_mcp.calls.audit.call_record import CallRecord, RecordOptions
from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.core.context import ToolContext
from goat_mcp.core.redaction import Redactor
from goat_mcp.files.changes.change import Author
from goat_mcp.files.changes.journal import Journal
from goat_mcp.files.workspace import FileVersion, Workspace
from goat_mcp.files.workspace.opened_file import hash_of
from goat_mcp.gateway.approvals.queue import ApprovalQueue
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.ui.app import ui_app
from goat_mcp.server.ui.parts import UiParts
from goat_mcp.settings.settings import settings_of
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.private_file import no_warning

BAR_MS = 100.0
CALLS = 10_000
CHANGES = 500
BURST_SIZE = 5
FLUSHED_EVERY = 2000
HOST = "127.0.0.1:8765"
ORIGIN = f"http://{HOST}"
_TOOLS = ("Read", "Edit", "Bash", "Grep", "mcp__github__list_issues", "mcp__files__read")
_RULES = ("mode default", "rule Bash(tool1 run *)", "rule Read(./private0/**)", "auto-allowed")
_CLIENTS = ("Claude Code 2.1", "Visual Studio Code", "cursor 1.2")


def measure(bench: Workbench) -> list[Row]:
    state = StateDirectory(bench.folder("page-state"))
    workspace = bench.folder("page-workspace")
    _record(state, workspace, bench)
    return anyio.run(_measured, bench, state, workspace)


def _record(state: StateDirectory, workspace: Path, bench: Workbench) -> None:
    """Calls; the last ones change a file each."""
    people = CallRecord(state, RecordOptions(), redactor=Redactor(), warn=no_warning, pid=1)
    log = AuditLog(state.folder() / "audit.jsonl", people=people)
    journal = Journal(state)
    for number in range(CALLS):
        bench.say(f"page: {number} calls recorded")
        tool, rule = _TOOLS[number % len(_TOOLS)], _RULES[number % len(_RULES)]
        ctx = ToolContext(call_id=f"{number:016x}", session_key="stdio", client_name=_CLIENTS[number % len(_CLIENTS)])
        arguments = {"file_path": f"/w/src/{number}.py", "content": "x" * (2000 if number % 3 == 0 else 100)}
        denied = number % 20 == 0
        log.decision(tool, arguments, ctx, decision="deny" if denied else "allow", rule=rule, by="rule")
        if number >= CALLS - CHANGES:
            _change_file(journal, Workspace(workspace), workspace / f"{number}.txt", ctx)
        log.outcome(tool, ctx, error_code="E_PERMISSION" if denied else None, result_chars=100)
        if number % FLUSHED_EVERY == FLUSHED_EVERY - 1:
            log.close()
    log.close()


def _change_file(journal: Journal, workspace: Workspace, path: Path, ctx: ToolContext) -> None:
    path.write_text("one\n", encoding="utf-8")
    with path.open("rb") as file:
        was = FileVersion(hash_of(file.fileno()), 4, 0)
    author = Author("Edit", ctx.call_id, ctx.session_key, ctx.principal)
    journal.write(workspace, workspace.resolve(str(path)), b"two\n", expect=was, author=author)


async def _measured(bench: Workbench, state: StateDirectory, workspace: Path) -> list[Row]:
    rules = {effect: texts[:20] for effect, texts in five_hundred_rules().items()}
    tree = {"workspace": [str(workspace)], "permissions": rules}
    gateway = Gateway(settings_of(tree, "the bench"), approval=Approval.HOST, state=state)

    async def made() -> Gateway:
        return gateway

    parts = UiParts(state, ApprovalQueue(state, ApprovalStore(state)), ORIGIN, made)
    app = ui_app(parts, frozenset({HOST}))
    last = f"{CALLS - 1:016x}"
    paths = {title: path for path, title in parts.pages.views} | {
        "Calls, a text that is nowhere": "/ui/calls?text=nowhere",
        "Calls, a tool that was never called": "/ui/calls?tool=Nothing",
        "one call, the first": f"/ui/calls/{0:016x}",
        "one call, the last": f"/ui/calls/{last}",
        "undo of the last change": f"/ui/calls/{last}/undo",
        f"undo of {CHANGES} changes ago": f"/ui/calls/{CALLS - CHANGES:016x}/undo",
        "Rules, a call tested": "/ui/rules?tool=Bash&arguments=%7B%22command%22%3A%22ls%22%7D",
    }

    async def bare(request: Request) -> HTMLResponse:
        return HTMLResponse("<!doctype html><title>bare</title>")

    floor = httpx.ASGITransport(Starlette(routes=[Route("/", bare)]))
    async with (
        gateway.running(),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=ORIGIN) as page,
        httpx.AsyncClient(transport=floor, base_url=ORIGIN) as other,
    ):
        (await page.get(parts.links.new())).raise_for_status()
        asked: dict[str, Callable[[], Awaitable[object]]] = {
            name: partial(_get, page, path) for name, path in paths.items()
        }
        asked["bare"] = partial(_get, other, "/")
        bursts = bench.rounds(10, 3)
        started_s = time.monotonic()
        took = medians(
            await interleaved_bursts_ms(
                asked,
                bursts=bursts,
                size=BURST_SIZE,
                on_burst=lambda n: bench.say(f"page: burst {n + 1} of {bursts}, {time.monotonic() - started_s:.0f} s"),
            )
        )
    return [
        Row(f"page, {name}, {CALLS:,} calls, p50", took[name], "ms", "bare Starlette", took["bare"],
            Bar(took[name], BAR_MS, "ms"))
        for name in paths
    ]  # fmt: skip


async def _get(client: httpx.AsyncClient, path: str) -> None:
    (await client.get(path)).raise_for_status()
