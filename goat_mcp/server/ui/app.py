"""The page as an ASGI application: security outermost, then the login, then the views."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anyio.to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.server.http.guard import PAGE_PATH
from goat_mcp.server.ui import calls, catalog, now, rules, servers, start
from goat_mcp.server.ui.login import SESSION_LASTS_S, session_of
from goat_mcp.server.ui.pages import Pages
from goat_mcp.server.ui.parts import UiParts
from goat_mcp.server.ui.security import (
    LOGIN_PATH,
    STATIC_PATH,
    CheckedForms,
    PageGuard,
    SessionGate,
    cookie_name,
    is_secure,
    user_of,
)

VIEWS = (
    ("now", "Now"),
    ("calls", "Calls"),
    ("servers", "Servers"),
    ("catalog", "Catalog"),
    ("rules", "Rules"),
    ("start", "Start"),
)
"""Name and title. The first one is at `/ui`, the others at `/ui/NAME`."""

_STATIC = Path(__file__).with_name("static")
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_STATUS = {ErrorCode.NOT_FOUND: 404, ErrorCode.PERMISSION: 403}
Wrap = Callable[[ASGIApp], ASGIApp]


def ui_app(
    parts: UiParts,
    hosts: frozenset[str],
    *,
    is_loopback: bool = True,
    behind_login: Wrap = lambda app: app,
) -> ASGIApp:
    """`hosts` are the Host headers that the page is served at. `behind_login` wraps what only the owner reaches."""
    parts.pages.views = [(PAGE_PATH if name == "now" else f"{PAGE_PATH}/{name}", title) for name, title in VIEWS]
    routes = [route for view in (now, calls, servers, catalog, rules, start) for route in view.routes(parts)]
    shown = Starlette(
        routes=[*routes, Route("/ui/logout", _logout(parts), methods=["POST"])],
        exception_handlers={ToolError: _refused(parts.pages), HTTPException: _not_found(parts.pages)},
    )

    async def known(scope: Scope, receive: Receive, send: Send) -> None:
        if not session_of(scope).viewer.is_owner and not _is_for_all(scope["path"]):
            answer = parts.pages.error(Request(scope), 403, "This view is for whoever runs goat-mcp here")
            await answer(scope, receive, send)
        elif scope["path"] == "/ui/events" and scope["method"] == "GET":
            await parts.changes.stream(scope, receive, send)
        else:
            await forms(scope, receive, send)

    forms = CheckedForms(_Caught(shown, parts), parts)
    anybody = Starlette(
        routes=[
            Route(LOGIN_PATH, _login(parts), methods=["GET"]),
            Route(STATIC_PATH + "{name}", _static(), methods=["GET"]),
        ],
        exception_handlers={HTTPException: _not_found(parts.pages)},
    )
    return PageGuard(SessionGate(anybody, behind_login(known), parts), hosts, is_loopback, parts.public_origin)


def _is_for_all(path: str) -> bool:
    """Whether people who do not run this server may come here too: the views look at who it is."""
    return path in (PAGE_PATH, "/ui/events", "/ui/logout") or path.startswith(("/ui/approvals/", "/ui/running/"))


class _Caught:
    """A bug is logged once with an id; the browser sees the id alone (R-SECRET-3)."""

    def __init__(self, app: ASGIApp, parts: UiParts) -> None:
        self._app = app
        self._parts = parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_started = False

        async def sent(message: Message) -> None:
            nonlocal has_started
            # Starlette answers a bug itself, and raises it again: its answer is dropped.
            if message["type"] == "http.response.start" and message["status"] == 500:
                return
            if message["type"] == "http.response.start":
                has_started = True
            if has_started:
                await send(message)

        try:
            await self._app(scope, receive, sent)
        except Exception as bug:
            id = secrets.token_hex(8)
            self._parts.log_bug(id, f"page {scope['path']}", bug)
            if not has_started:
                answer = self._parts.pages.error(Request(scope), 500, f"The page failed unexpectedly ({id})")
                await answer(scope, receive, send)


def _refused(pages: Pages) -> Callable[[Request, Exception], Response]:
    def answer(request: Request, refused: Exception) -> Response:
        assert isinstance(refused, ToolError)
        return pages.error(request, _STATUS.get(refused.code, 400), refused.message, refused.suggestion)

    return answer


def _not_found(pages: Pages) -> Callable[[Request, Exception], Response]:
    def answer(request: Request, problem: Exception) -> Response:
        status = problem.status_code if isinstance(problem, HTTPException) else 404
        return pages.error(request, status, "There is no such page" if status == 404 else "That cannot be done here")

    return answer


def _login(parts: UiParts) -> Callable[[Request], Any]:
    async def login(request: Request) -> HTMLResponse:
        """Use the link. The answer is a page that goes on by itself: a cookie that is SameSite=Strict would not be
        sent along a redirect if another site's page, or a mail in the browser, has opened the link."""
        sessions = parts.sessions
        token = request.query_params.get("token", "")
        user = await anyio.to_thread.run_sync(user_of, request.scope)
        link = await anyio.to_thread.run_sync(parts.links.use, token, user)
        if link is None:
            # A link that holds is never refused: any site can make a browser fail here.
            if not sessions.may_try():
                return parts.pages.error(request, 429, "Too many logins have failed", "Wait a moment, then try again.")
            sessions.failed()
            suggestion = "Run goat-mcp ui again; it opens a new link."
            return parts.pages.error(request, 403, "This link was used before, or its time is over", suggestion)
        answer = parts.pages.answer(request, "login.html", {"to": PAGE_PATH})
        answer.set_cookie(
            cookie_name(request.scope),
            sessions.open(link),
            max_age=int(SESSION_LASTS_S),
            path=PAGE_PATH,
            httponly=True,
            secure=is_secure(parts.public_origin, request.scope),
            samesite="strict",
        )
        return answer

    return login


def _logout(parts: UiParts) -> Callable[[Request], Any]:
    async def logout(request: Request) -> HTMLResponse:
        parts.sessions.end(session_of(request.scope))
        scope = {key: value for key, value in request.scope.items() if not key.startswith("goat_mcp.")}
        return parts.pages.error(Request(scope), 200, "You are logged out", "Run goat-mcp ui to come back.")

    return logout


def _static() -> Callable[[Request], Any]:
    files: Sequence[Path] = sorted(_STATIC.iterdir())
    contents = {file.name: (file.read_bytes(), _TYPES[file.suffix]) for file in files if file.suffix in _TYPES}

    async def static(request: Request) -> Response:
        found = contents.get(request.path_params["name"])
        if found is None:
            raise HTTPException(404)
        return Response(found[0], media_type=found[1])

    return static
