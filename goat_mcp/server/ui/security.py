"""What every request to the page passes, outermost first: Host, Origin and method; the session; the form and its token.

The headers that a browser needs to keep others out are on every answer, refusals too.
"""

from __future__ import annotations

import hmac
from collections.abc import MutableSequence, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

import anyio
from starlette.datastructures import ImmutableMultiDict
from starlette.requests import Request, cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from goat_mcp.server.http.guard import Refusal
from goat_mcp.server.http.socket_user import tcp_peer_user
from goat_mcp.server.ui.login import session_of, with_session

if TYPE_CHECKING:  # the parts hold the pages, which show what is refused
    from goat_mcp.server.ui.parts import UiParts

MAX_FORM_BYTES = 256 * 1024
MAX_FIELDS = 200
FORM_DEADLINE_S = 10.0
LOGIN_PATH = "/ui/login"
STATIC_PATH = "/ui/static/"
_FORM = "goat_mcp.form"
_FORM_TYPE = b"application/x-www-form-urlencoded"
CONTENT_SECURITY_POLICY = (
    b"default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; object-src 'none'"
)

Headers = Sequence[tuple[bytes, bytes]]
Form = ImmutableMultiDict[str, str]


def values_of(headers: Headers, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in headers if key == name]


@dataclass
class PageGuard:
    """The outermost one. `hosts` are those that the page is served at, with port."""

    app: ASGIApp
    hosts: frozenset[str]
    is_loopback: bool = True
    public_origin: str = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers: MutableSequence[tuple[bytes, bytes]] = list(message.get("headers", ()))
                message = {**message, "headers": [*headers, *self._headers()]}
            await send(message)

        if (refusal := self.refusal(scope["method"], scope["headers"])) is not None:
            await refusal.answer(send_guarded)
            return
        await self.app(scope, receive, send_guarded)

    def refusal(self, method: str, headers: Headers) -> Refusal | None:
        """Why the request may not go on; None lets it pass."""
        hosts = [host.lower() for host in values_of(headers, b"host")]
        origins = [origin.lower() for origin in values_of(headers, b"origin")]
        if len(hosts) != 1 or hosts[0] not in self.hosts | ({host_of(self.public_origin)} - {""}):
            return Refusal(421, "this Host is not served here")
        if method not in ("GET", "POST"):
            return Refusal(405, "method not allowed", ((b"allow", b"GET, POST"),))
        sites, modes = values_of(headers, b"sec-fetch-site"), values_of(headers, b"sec-fetch-mode")
        if method == "GET" and modes != ["navigate"] and set(sites) & {"cross-site", "same-site"}:
            return Refusal(403, "another site may lead here, but load nothing")
        own = [self.public_origin] if hosts[0] == host_of(self.public_origin) else [f"http://{hosts[0]}"]
        # A browser that may send no referrer says "null" of its own form, too; the other header cannot be forged by
        # a page.
        is_own = sites == ["same-origin"] and origins in ([], ["null"])
        if origins != own and not (is_own or (method == "GET" and not origins)):
            return Refusal(403, "this Origin may not use the page")
        return None

    def _headers(self) -> Headers:
        # Without Sec-Fetch-Site, which browsers send to loopback and HTTPS only, a form needs its Origin.
        referrer = b"no-referrer" if self.is_loopback else b"same-origin"
        return (
            (b"content-security-policy", CONTENT_SECURITY_POLICY),
            (b"referrer-policy", referrer),
            (b"x-content-type-options", b"nosniff"),
            (b"x-frame-options", b"DENY"),
            (b"cross-origin-opener-policy", b"same-origin"),
            (b"cross-origin-resource-policy", b"same-origin"),
            (b"cache-control", b"no-store"),
        )


def host_of(origin: str) -> str:
    """The Host header of requests to it; empty without one."""
    return origin.rpartition("//")[2].lower()


def is_secure(public_origin: str, scope: Scope) -> bool:
    """Whether the browser speaks TLS with whoever passes its request on: then no cookie may go without."""
    return public_origin.startswith("https:") and values_of(scope["headers"], b"host")[0].lower() == host_of(
        public_origin
    )


def cookie_name(scope: Scope) -> str:
    """With the port: a browser sends the cookies of one host to all ports of it."""
    port = values_of(scope["headers"], b"host")[0].rpartition(":")[2]
    return f"goat_mcp_ui_{port}"


def user_of(scope: Scope) -> int | None:
    """Who runs the browser, if it is on this machine and the system says it. Blocking."""
    peer, own = scope.get("client"), scope.get("server")
    return tcp_peer_user((peer[0], peer[1]), (own[0], own[1])) if peer and own and own[1] else None


@dataclass
class SessionGate:
    """Lets nobody pass without a session, except to log in and to what looks the same for everybody."""

    app: ASGIApp
    known: ASGIApp
    """Behind the login."""

    parts: UiParts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == LOGIN_PATH or scope["path"].startswith(STATIC_PATH):
            await self.app(scope, receive, send)
            return
        cookie = cookie_parser("; ".join(values_of(scope["headers"], b"cookie"))).get(cookie_name(scope), "")
        session = self.parts.sessions.find(cookie) if cookie else None
        if session is not None and session.link.user is not None:
            # A browser shows its cookies for 127.0.0.1 to every port of it, so to other users' servers, too.
            user = await anyio.to_thread.run_sync(user_of, scope)
            session = session if session.link.is_for(user) else None
        if session is None:
            answer = self.parts.pages.error(
                Request(scope), 401, "You are not logged in", "Run goat-mcp ui again; it opens a new link."
            )
            await answer(scope, receive, send)
            return
        await self.known(with_session(scope, session), receive, send)


@dataclass
class CheckedForms:
    """Every POST is a form with the session's token. It is read whole, within limits, before a view sees it."""

    app: ASGIApp
    parts: UiParts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        form = await _read_form(scope, receive)
        if isinstance(form, Refusal):
            answer = self.parts.pages.error(Request(scope), form.status, form.reason, "Go back and try again.")
            await answer(scope, receive, send)
            return
        shown = form.get("csrf", "").encode("utf-8", "surrogatepass")
        if not hmac.compare_digest(shown, session_of(scope).csrf.encode()):
            answer = self.parts.pages.error(
                Request(scope), 403, "This form is not of your session", "Load the page again, then answer there."
            )
            await answer(scope, receive, send)
            return
        await self.app({**scope, _FORM: form}, receive, send)


def form_of(request: Request) -> Form:
    """What a POST sends. Its token is checked already."""
    return request.scope[_FORM]


async def _read_form(scope: Scope, receive: Receive) -> Form | Refusal:
    types = [value.split(";")[0].strip().lower() for value in values_of(scope["headers"], b"content-type")]
    if types != [_FORM_TYPE.decode()]:
        return Refusal(415, "This is no form")
    body = bytearray()
    with anyio.move_on_after(FORM_DEADLINE_S):
        while len(body) <= MAX_FORM_BYTES:
            message = await receive()
            if message["type"] != "http.request":
                return Refusal(400, "The form was not sent whole")
            body += message.get("body", b"")
            if not message.get("more_body", False):
                return _parsed(bytes(body))
        return Refusal(413, "The form is too large")
    return Refusal(408, "The form did not come in time")


def _parsed(body: bytes) -> Form | Refusal:
    if len(body) > MAX_FORM_BYTES:
        return Refusal(413, "The form is too large")
    try:
        text = body.decode("ascii")
        return ImmutableMultiDict(
            parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="strict", encoding="utf-8")
        )
    except ValueError:  # not ASCII, not UTF-8, or too many fields
        return Refusal(400, "The form cannot be read")
