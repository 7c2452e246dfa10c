"""The view Calls: who called what, who decided it and how it ended; one call; the check of the record."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import anyio.to_thread
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from goat_mcp.calls.approvals.record import Approval
from goat_mcp.calls.audit.call_record import DAY_S, FILE_NAME
from goat_mcp.calls.audit.recorded_calls import (
    CallSearch,
    InvalidCursor,
    UnreadableRecord,
    names_in,
    one_call,
    page_of_calls,
)
from goat_mcp.calls.audit.records import InvalidTime, lines_of_call, outcome_of, parse_since, reason_of, why_of
from goat_mcp.calls.audit.verify import verify
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.rights import LOCAL
from goat_mcp.files.documents.visible_text import one_line
from goat_mcp.processes.process_table import living_process
from goat_mcp.server.ui.login import session_of
from goat_mcp.server.ui.pages import back_to, duration
from goat_mcp.server.ui.parts import UiParts
from goat_mcp.server.ui.undo import changes_of, is_undone, undo_call, undo_data

CALLS_ON_A_PAGE = 50
NAMES_AMONG = 2000
"""The names that the filters offer are those of so many calls."""
SHOWN_ARGUMENT_CHARS = 200
VERIFY_TIMEOUT_S = 20.0
_VERIFY = "/ui/calls/verify"


def routes(parts: UiParts) -> list[Route]:
    checked: dict[str, Any] = {}
    """What the last check of this process has found."""

    async def show(request: Request) -> Response:
        return parts.pages.answer(request, "calls.html", await calls_data(parts, request.query_params))

    async def show_one(request: Request) -> Response:
        id = request.path_params["id"]
        data = await call_data(parts, id)
        return parts.pages.answer(request, "call.html", {**data, "note": session_of(request.scope).notes.get(id, "")})

    async def confirm_undo(request: Request) -> Response:
        return parts.pages.answer(
            request, "undo.html", await undo_data(parts, await _found(parts, request.path_params["id"]))
        )

    async def undo(request: Request) -> Response:
        id = request.path_params["id"]
        session_of(request.scope).note(id, await undo_call(parts, await _found(parts, id)))
        return back_to(f"/ui/calls/{id}")

    async def show_check(request: Request) -> Response:
        data = {"title": "Check of the record", "found": checked, "path": str(await _chain(parts))}
        return parts.pages.answer(request, "verify.html", data)

    async def check(request: Request) -> Response:
        checked.update(await verified(await _chain(parts)))
        return back_to(_VERIFY)

    return [
        Route("/ui/calls", show, methods=["GET"]),
        Route(_VERIFY, show_check, methods=["GET"]),
        Route(_VERIFY, check, methods=["POST"]),
        Route("/ui/calls/{id:str}", show_one, methods=["GET"]),
        Route("/ui/calls/{id:str}/undo", confirm_undo, methods=["GET"]),
        Route("/ui/calls/{id:str}/undo", undo, methods=["POST"]),
    ]


_FILTERS = ("text", "tool", "server", "client", "since")
_SWITCHES = ("denied", "failed")


async def calls_data(parts: UiParts, asked: QueryParams | Mapping[str, str]) -> dict[str, Any]:
    """One page of the calls that fit, newest first. Raises `ToolError`."""
    chosen = {name: asked.get(name, "").strip()[:500] for name in _FILTERS}
    chosen |= {name: "1" for name in _SWITCHES if asked.get(name)}
    wanted = _search(chosen)
    before = asked.get("before", "")

    def read() -> dict[str, Any]:
        path = parts.state.path / FILE_NAME
        found = page_of_calls(path, wanted, before=before, count=CALLS_ON_A_PAGE)
        approvals = parts.queue.store.used_by([str(call["call_id"]) for call in found.calls])
        return {
            "calls": [_row(call, approvals.get(str(call["call_id"]))) for call in found.calls],
            "next": _link(chosen, found.next) if found.next else "",
            "searched_to_s": found.searched_to_s,
            "names": names_in(path, NAMES_AMONG),
        }

    try:
        data = await anyio.to_thread.run_sync(read)
    except InvalidCursor:
        raise ToolError(ErrorCode.INPUT, "there is no such page of calls", "Begin with the newest ones.") from None
    except UnreadableRecord as problem:
        raise _unreadable(parts, problem) from None
    is_filtered = wanted != CallSearch()
    return {
        "title": "Calls",
        "filters": {name: chosen.get(name, "") for name in (*_FILTERS, *_SWITCHES)},
        "is_filtered": is_filtered,
        "is_first": not before,
        "newest": _link(chosen, ""),
        **data,
    }


async def call_data(parts: UiParts, id: str) -> dict[str, Any]:
    """All that is known of one call. Raises `ToolError(NOT_FOUND)`."""
    call = await _found(parts, id)
    chain = await _chain(parts)

    def read() -> dict[str, Any]:
        approval = parts.queue.store.used_by([id]).get(id)
        changes = changes_of(parts, call)
        lines, problem = _audit_lines(chain, id, call["at_s"])
        return {
            "approval": _approval(approval) if approval is not None else None,
            "changes": [(one.kind, str(one.path)) for one in changes],
            "is_undone": is_undone(parts, changes),
            "lines": lines,
            "lines_problem": problem,
        }

    given = call.get("arguments")
    return {
        "title": f"Call of {call['tool']}",
        **_row(call, None),
        **await anyio.to_thread.run_sync(read),
        "ended_at_s": call["ended_at_s"],
        "server": call["server"],
        "session": call["session"],
        "pid": call["pid"],
        "by": call.get("by", ""),
        "rule": call["rule"],
        "given": None if given is None else [(name, _text(value)) for name, value in given.items()],
        "args_sha256": call["args_sha256"],
        "args_chars": call["args_chars"],
        "result_chars": call.get("result_chars"),
        "chain": str(chain),
    }


async def verified(chain: Path) -> dict[str, Any]:
    """The result of `goat-mcp audit verify`, or that it takes too long here."""
    started_s = time.monotonic()

    def work() -> tuple[str, str]:
        try:
            found = verify(chain, timeout_s=VERIFY_TIMEOUT_S)
        except FileNotFoundError:
            return "wait", f"{chain}: there is none yet"
        except OSError as problem:
            return "bad", f"{chain}: {problem.strerror or problem}"
        return "bad" if not found.is_intact else "good" if found.is_finished else "wait", found.in_words

    kind, words = await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
    return {"kind": kind, "words": words, "at_s": time.time(), "took": duration(time.monotonic() - started_s)}


def _search(chosen: Mapping[str, str]) -> CallSearch:
    since: datetime | None = None
    if chosen["since"]:
        try:
            since = parse_since(chosen["since"], datetime.now(UTC))
        except (InvalidTime, OverflowError):
            raise ToolError(
                ErrorCode.INPUT,
                f"{chosen['since']!r:.100} is no time",
                "Write e.g. 2026-11-22, 2026-11-22T10:00:00Z or 12h.",
            ) from None
    return CallSearch(
        since=since,
        text=chosen["text"],
        tool=chosen["tool"],
        server=chosen["server"],
        client=chosen["client"],
        only_denied="denied" in chosen,
        only_failed="failed" in chosen,
    )


def _link(chosen: Mapping[str, str], before: str) -> str:
    wanted = {name: value for name, value in {**chosen, "before": before}.items() if value}
    return f"/ui/calls?{urlencode(wanted)}" if wanted else "/ui/calls"


def _row(call: Mapping[str, Any], approval: Approval | None) -> dict[str, Any]:
    took_ms = call.get("duration_ms")
    outcome, kind = outcome_of(call), "bad"
    if "ended" not in call:
        outcome, kind = ("running", "wait") if _is_running(call) else ("no end recorded", "bad")
    elif outcome == "ok":
        kind = "good"
    return {
        "id": call["call_id"],
        "at_s": call["at_s"],
        "client": call["client"],
        "principal": call["principal"] if call["principal"] != LOCAL else "",
        "tool": call["tool"],
        "arguments": _summary(call),
        "outcome": outcome,
        "kind": kind,
        "took": "" if took_ms is None else f"{took_ms:.0f} ms" if took_ms < 1000 else duration(took_ms / 1000),
        "decision": call["decision"],
        "reason": reason_of(call),
        "why": why_of(call),
        "approved_by": approval.decided_by if approval is not None else "",
    }


def _is_running(call: Mapping[str, Any]) -> bool:
    """Whether its process still is; a number is given again, but no call takes a day."""
    return time.time() - call["at_s"] < DAY_S and living_process(call["pid"]) is not None


def _summary(call: Mapping[str, Any]) -> str:
    given: Mapping[str, Any] | None = call.get("arguments")
    if given is None:
        return f"{call['args_chars']} characters, not kept"
    texts = (f"{name}: {_text(value)[:SHOWN_ARGUMENT_CHARS]}" for name, value in given.items())
    return one_line("; ".join(texts), SHOWN_ARGUMENT_CHARS)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _approval(one: Approval) -> dict[str, Any]:
    return {
        "short_id": one.short_id,
        "status": one.status.value,
        "by": one.decided_by,
        "at_s": one.decided_at_s,
        "scope": one.verdict.scope if one.verdict is not None else "",
        "reason": one.verdict.reason if one.verdict is not None else "",
    }


def _audit_lines(chain: Path, id: str, at_s: float) -> tuple[list[tuple[str, str]], str]:
    """The lines of the call in the chain of hashes, and why they cannot be read."""
    try:
        return lines_of_call(chain, id, at_s), ""
    except FileNotFoundError:
        return [], "there is none yet"
    except OSError as problem:
        return [], problem.strerror or str(problem)


async def _chain(parts: UiParts) -> Path:
    named = (await parts.gateway()).settings.audit.path
    return named.expanduser() if named is not None else parts.state.path / "audit.jsonl"


async def _found(parts: UiParts, id: str) -> dict[str, Any]:
    try:
        call = await anyio.to_thread.run_sync(one_call, parts.state.path / FILE_NAME, id)
    except UnreadableRecord as problem:
        raise _unreadable(parts, problem) from None
    if call is None:
        raise ToolError(
            ErrorCode.NOT_FOUND,
            f"no call {id[:40]!r} is recorded",
            "Calls are kept for audit.kept_days; older ones are in the chain of hashes: goat-mcp audit show --file.",
        )
    return call


def _unreadable(parts: UiParts, problem: UnreadableRecord) -> ToolError:
    return ToolError(
        ErrorCode.IO, f"the record of calls {parts.state.path / FILE_NAME} cannot be read: {problem}", "Try again."
    )
