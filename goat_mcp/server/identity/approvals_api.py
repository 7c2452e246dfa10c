"""Deciding over HTTP, for people whom the provider knows: their own, or as an administrator everybody's.

`GET /approvals` lists what waits, `POST /approvals/ID` decides about one, `POST /approvals/page` gives a link to the
page. A token needs the scope `identity.approve_scope`: those of ordinary clients have it not, so that no model approves
what it has asked for itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from goat_mcp.calls.approvals.record import DecidedBefore
from goat_mcp.calls.approvals.scopes import ONCE
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.gateway.approvals.queue import ApprovalQueue
from goat_mcp.gateway.approvals.viewer import ViewedApprovals, Viewer, approval_fields, listed
from goat_mcp.server.caller_identity import ADMINISTRATOR_SCOPE, APPROVER_SCOPE
from goat_mcp.server.http.fast_path import MESSAGE
from goat_mcp.server.http.guard import APPROVALS_PATH, is_approvals

PAGE_LINK = "page"
_DECIDED_SHOWN = 50
_STATUS = {ErrorCode.NOT_FOUND: 404, ErrorCode.PERMISSION: 403, ErrorCode.AUTH: 403, ErrorCode.IO: 500}
PageLink = Callable[[Viewer], str]


class _Decision(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    approve: bool
    scope: str = ONCE
    remember: bool = False
    prefix: str = Field(default="", max_length=1000)
    reason: str = Field(default="", max_length=2000)


@dataclass
class ApprovalsApi:
    """ASGI middleware, behind the token, the limits and the reading of the body. `page_link` blocks."""

    app: ASGIApp
    queue: Callable[[], ApprovalQueue]
    page_link: PageLink | None
    approve_scope: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not is_approvals(scope["path"]):
            await self.app(scope, receive, send)
            return
        try:
            answer = await self._answer(scope)
        except DecidedBefore as before:
            answer = _problem(409, before)
        except ToolError as refused:
            answer = _problem(_STATUS.get(refused.code, 400), refused)
        await answer(scope, receive, send)

    async def _answer(self, scope: Scope) -> Response:
        viewer = self._viewer(scope)
        approvals = ViewedApprovals(self.queue(), viewer)
        id = scope["path"].removeprefix(APPROVALS_PATH).removeprefix("/")
        method: Literal["GET", "POST"] | str = scope["method"]
        if method == "GET" and not id:
            waiting, decided = await approvals.waiting(), await approvals.decided(_DECIDED_SHOWN)
            return _json(
                {"of": "everybody" if viewer.sees_all else viewer.principal, "waiting": listed(waiting)}
                | {"decided": listed(decided)}
            )
        if method == "GET":
            await approvals.waiting()  # what waits elsewhere has a record now, too
            return _json(approval_fields(await approvals.find(id)))
        if method == "POST" and id == PAGE_LINK:
            return await self._link(viewer)
        if method != "POST" or not id:
            return _json({"error": "method not allowed"}, 405)
        decision = _decision(scope.get(MESSAGE))
        await approvals.waiting()
        if decision.approve:
            decided = await approvals.approve(
                id, scope=decision.scope, remember=decision.remember, prefix=decision.prefix, by=viewer.principal
            )
        else:
            decided = await approvals.deny(id, by=viewer.principal, reason=decision.reason)
        status = decided.approval.status.value
        return _json({"id": decided.approval.id, "outcome": status, "message": decided.done})

    def _viewer(self, scope: Scope) -> Viewer:
        """Raises `ToolError(PERMISSION)`."""
        user = scope.get("user")
        if not isinstance(user, AuthenticatedUser) or APPROVER_SCOPE not in user.access_token.scopes:
            raise ToolError(
                ErrorCode.PERMISSION,
                f"deciding needs a token with the scope {self.approve_scope}",
                "Ask the identity provider for one that no MCP client gets.",
            )
        token = user.access_token
        return Viewer(token.client_id, sees_all=ADMINISTRATOR_SCOPE in token.scopes)

    async def _link(self, viewer: Viewer) -> Response:
        import anyio.to_thread

        if self.page_link is None:
            raise ToolError(ErrorCode.NOT_FOUND, "this server shows no page", "Set ui.enabled.")
        return _json({"url": await anyio.to_thread.run_sync(self.page_link, viewer)})


def _decision(body: Any) -> _Decision:
    try:
        return _Decision.model_validate(body)
    except ValidationError as broken:
        first = broken.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the body"
        raise ToolError(
            ErrorCode.INPUT,
            f"{where}: {first['msg']}",
            'Send {"approve": true} or {"approve": false, "reason": "..."}.',
        ) from None


def _json(value: Any, status: int = 200) -> Response:
    return JSONResponse(value, status, {"cache-control": "no-store"})


def _problem(status: int, refused: ToolError) -> Response:
    facts = {"decided_by": refused.approval.decided_by} if isinstance(refused, DecidedBefore) else {}
    document = {"error": str(refused.code), "message": refused.message, "suggestion": refused.suggestion, **facts}
    return _json(document, status)
