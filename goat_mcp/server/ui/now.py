"""The view Now: what waits for the owner, what runs, and what was decided lately."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from goat_mcp.calls.approvals.record import Approval, Choice, DecidedBefore, Kind, Status
from goat_mcp.calls.approvals.scopes import ONCE
from goat_mcp.calls.approvals.wording import CAREFUL_FACT, CONSEQUENCES, READS_REASON, cut_diff
from goat_mcp.core.errors import ToolError
from goat_mcp.files.documents.visible_text import shown_path
from goat_mcp.gateway.approvals.outcome import results_of
from goat_mcp.gateway.approvals.queue import Decided
from goat_mcp.gateway.approvals.viewer import ViewedApprovals
from goat_mcp.server.ui import running
from goat_mcp.server.ui.login import Session, session_of
from goat_mcp.server.ui.pages import back_to
from goat_mcp.server.ui.parts import UiParts
from goat_mcp.server.ui.security import form_of

BY = "page"
LATELY = 10
MAX_WAITING = 50
MAX_DIFF_LINES = 2000
KINDS: Mapping[Kind, str] = {
    Kind.CALL: "Call",
    Kind.PLAN: "Plan",
    Kind.CHANGE: "Change of a file",
    Kind.DEFINITION: "Changed server",
    Kind.LOGIN: "Login",
    Kind.PROJECT: "Settings of a project",
}


def routes(parts: UiParts) -> list[Route]:
    async def show(request: Request) -> Response:
        data = await now_data(parts, session_of(request.scope), request.query_params.get("id", ""))
        return parts.pages.answer(request, "now.html", data)

    async def approve(request: Request) -> Response:
        form, id = form_of(request), request.path_params["id"]
        scope, prefix = form.get("scope", ONCE), form.get("prefix", "").strip()
        remember = form.get("remember") == "yes"
        approvals, by = _of(request)
        decide = approvals.approve(id, scope=scope, remember=remember, prefix=prefix, by=by)
        return await _decided(request, decide)

    async def deny(request: Request) -> Response:
        id = request.path_params["id"]
        reason = form_of(request).get("reason", "").strip()
        approvals, by = _of(request)
        return await _decided(request, approvals.deny(id, by=by, reason=reason))

    def _of(request: Request) -> tuple[ViewedApprovals, str]:
        viewer = session_of(request.scope).viewer
        return ViewedApprovals(parts.queue, viewer), BY if viewer.is_owner else f"{viewer.principal} ({BY})"

    async def _decided(request: Request, decide: Awaitable[Decided]) -> Response:
        session = session_of(request.scope)
        try:
            decided = await decide
            approval = decided.approval
            note = decided.problem if approval.request.kind is Kind.CALL else decided.done
        except DecidedBefore as before:
            approval, note = before.approval, f"{before.message}. The first decision stands."
        session.note(approval.id, note)
        return back_to(f"/ui?id={approval.id}")

    return [
        *running.routes(parts),
        Route("/ui", show, methods=["GET"]),
        Route("/ui/approvals/{id:str}/approve", approve, methods=["POST"]),
        Route("/ui/approvals/{id:str}/deny", deny, methods=["POST"]),
    ]


async def now_data(parts: UiParts, session: Session, shown: str = "") -> dict[str, Any]:
    """What waits, oldest first; what was decided, newest first; `answer` is about the record that was just decided."""
    approvals = ViewedApprovals(parts.queue, session.viewer)
    waiting = await approvals.waiting()
    lately = await approvals.decided(LATELY)
    answered = None
    if shown and parts.queue.store.exists:
        try:
            answered = await approvals.find(shown)
        except ToolError:
            answered = None
    decided = lately if answered is None or answered in lately else [answered, *lately]
    results = await anyio.to_thread.run_sync(results_of, parts.state, decided)
    is_answered = answered is not None and answered.status is not Status.WAITING
    return {
        "title": "Now",
        "waiting": [_waiting(one) for one in waiting[:MAX_WAITING]],
        "count": len(waiting),
        "running": await running.running_data(parts, session.viewer, {one.call_id for one in waiting if one.call_id}),
        "lately": [_lately(one, results.get(one.id, "")) for one in lately],
        "answer": _lately(answered, results.get(answered.id, "")) if is_answered and answered is not None else None,
        "note": session.notes.get(shown, ""),
    }


def _waiting(approval: Approval) -> dict[str, Any]:
    request = approval.request
    return {
        "id": approval.id,
        "short_id": approval.short_id,
        "kind": KINDS[request.kind],
        "title": request.title,
        "risk": request.risk,
        "why": request.why,
        "careful": request.facts.get(CAREFUL_FACT, ()),
        "consequences": CONSEQUENCES.get(request.kind, ""),
        "reads_reason": request.kind in READS_REASON,
        "server": request.facts.get("server", "") if request.kind is Kind.LOGIN else "",
        "command": request.facts.get("command", "") if request.kind is Kind.LOGIN else "",
        "client": request.client,
        "principal": request.principal,
        "asked_by": request.asked_by,
        "tool": request.tool,
        "workspace": shown_path(request.workspace),
        "directory": shown_path(request.directory) if request.directory != request.workspace else "",
        "at_s": approval.at_s,
        "expires_at_s": request.expires_at_s,
        "arguments": request.arguments,
        "diff": "\n".join(cut_diff(request.diff, MAX_DIFF_LINES)),
        "has_caller": bool(approval.call_id),
        "choices": _choices(approval),
    }


def _choices(approval: Approval) -> Sequence[Choice]:
    """A login has none: it needs more than a press."""
    request = approval.request
    return () if request.kind is Kind.LOGIN else request.choices or (Choice(ONCE, "Approve"),)


def _lately(approval: Approval, result: str) -> dict[str, Any]:
    request, verdict = approval.request, approval.verdict
    scope = verdict.scope if verdict is not None and verdict.approved and verdict.scope != ONCE else ""
    return {
        "id": approval.id,
        "short_id": approval.short_id,
        "kind": KINDS[request.kind],
        "title": request.title,
        "client": request.client,
        "status": approval.status.value,
        "by": approval.decided_by,
        "scope": scope,
        "reason": verdict.reason if verdict is not None else "",
        "at_s": approval.decided_at_s or (request.expires_at_s if approval.status is Status.EXPIRED else None),
        "result": result,
    }
