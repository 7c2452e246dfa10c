"""What runs, for the view Now: calls that take longer than a moment, and background tasks, of all processes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import anyio
import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from goat_mcp.calls.audit.call_record import FILE_NAME as CALLS_FILE
from goat_mcp.calls.audit.recorded_calls import UnreadableRecord, one_call
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.json_values import items, mapping
from goat_mcp.gateway.approvals.viewer import Viewer
from goat_mcp.gateway.status.process_files import ProcessFiles
from goat_mcp.gateway.status.requests import RequestKind
from goat_mcp.gateway.status.running_servers import who
from goat_mcp.server.ui.login import session_of
from goat_mcp.server.ui.pages import back_to
from goat_mcp.server.ui.parts import UiParts
from goat_mcp.server.ui.process_requests import answers_to

MAX_SHOWN = 50
ANSWERS_WITHIN_S = 2.0


def routes(parts: UiParts) -> list[Route]:
    async def cancel(request: Request) -> Response:
        id = request.path_params["id"]
        session = session_of(request.scope)
        if not session.viewer.is_owner and id not in {one["id"] for one in await running_data(parts, session.viewer)}:
            raise ToolError(
                ErrorCode.NOT_FOUND, f"nothing of yours runs with the id {id[:80]!r}", "Load the page again."
            )
        session.note(id, await cancelled(parts, id))
        return back_to(f"/ui?id={id}")

    return [Route("/ui/running/{id:str}/cancel", cancel, methods=["POST"])]


async def running_data(parts: UiParts, viewer: Viewer, waiting: Collection[str] = ()) -> list[dict[str, Any]]:
    """What this viewer may see, the oldest first, without the calls that wait for a decision: `waiting` are their
    ids."""
    return await anyio.to_thread.run_sync(_running, parts, viewer, waiting)


async def cancelled(parts: UiParts, id: str) -> str:
    """Have whichever process runs it end a call or task. What to tell the owner."""
    answers = await answers_to(parts, RequestKind.CANCEL, id, within_s=ANSWERS_WITHIN_S, first="cancelled")
    if any(one.get("state") == "cancelled" for one in answers):
        return "Cancelled. The model reads that you did it."
    if answers:
        return "It had ended before it could be cancelled."
    return "No process answered; it may be busy. Try again."


def _running(parts: UiParts, viewer: Viewer, waiting: Collection[str]) -> list[dict[str, Any]]:
    found = [
        _shown(mapping(one), document)
        for document in ProcessFiles(parts.state).running()
        for one in items(document.get("running"))
        if mapping(one).get("id") not in {None, *waiting}
    ]
    if not viewer.sees_all:
        found = [one for one in found if one["principal"] == viewer.principal]
    found.sort(key=lambda one: one["started_s"])
    for one in found[:MAX_SHOWN]:
        if one["kind"] == "call":
            one["arguments"] = _arguments(parts, one["id"])
    return found[:MAX_SHOWN]


def _shown(one: Mapping[str, Any], document: Mapping[str, Any]) -> dict[str, Any]:
    progress = mapping(one.get("progress"))
    total = progress.get("total")
    return {
        "kind": str(one.get("kind", "")),
        "id": str(one.get("id", "")),
        "title": str(one.get("tool") or one.get("title") or ""),
        "client": str(one.get("client", "")),
        "principal": str(one.get("principal", "")),
        "started_s": float(one.get("started_s", 0)),
        "process": who(document),
        "done": progress.get("done"),
        "total": total if isinstance(total, int | float) and total > 0 else None,
        "message": str(progress.get("message") or ""),
        "arguments": (),
    }


def _arguments(parts: UiParts, call_id: str) -> list[tuple[str, str]]:
    """Without secrets, as the record for people has them; it lags behind by some tenths of a second."""
    try:
        call = one_call(parts.state.path / CALLS_FILE, call_id)
    except UnreadableRecord:
        return []
    arguments: Any = (call or {}).get("arguments")
    return [(str(name), str(value)) for name, value in mapping(arguments).items()]
