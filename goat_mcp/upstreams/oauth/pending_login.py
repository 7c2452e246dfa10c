"""One login under way: the address a browser opens, the address on this machine it comes back to, and how it ended.

Anything on the machine can connect to the second one, a page in the browser too. What does not name the login's own
state is refused and changes nothing. Who is shown the address, and who waits, is in `calls.login_elicitation`. AUT-3.
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import anyio
from anyio.abc import SocketAttribute, SocketStream
from mcp.shared.auth import AuthorizationCodeResult

from goat_mcp.state.file_lock import LockTimeout
from goat_mcp.upstreams.oauth.login_contract import AuthServerDown, LoginRefused

if TYPE_CHECKING:
    from mcp.shared.auth import AuthorizationCodeResult

    from goat_mcp.upstreams.config.entry import HttpEndpoint
    from goat_mcp.upstreams.oauth.upstream_login import UpstreamLogin

PATH = "/callback"
_MAX_HEAD_BYTES = 16 * 1024
_READ_S = 5.0
_REQUEST = re.compile(rb"GET (/[\x21-\x7e]*) HTTP/1\.[01]\r\n")
_HOST = re.compile(rb"\r\nhost:[ \t]*([\x21-\x7e]+)[ \t]*\r\n", re.I)
_HEADERS = (
    "content-type: text/html; charset=utf-8\r\ncache-control: no-store\r\nreferrer-policy: no-referrer\r\n"
    "content-security-policy: default-src 'none'\r\nx-content-type-options: nosniff\r\nconnection: close\r\n"
)


@dataclass
class RedirectListener:
    """The answer to one login, from the browser or from somebody who pastes the address it ended at."""

    redirect_uri: str
    _state: str = ""
    _came: anyio.Event = field(default_factory=anyio.Event)
    _result: AuthorizationCodeResult | None = None
    _error: str = ""

    def expect(self, login_url: str) -> None:
        """Only the answer to this login counts: the one with its state."""
        self._state = parse_qs(urlsplit(login_url).query).get("state", [""])[0]

    def take(self, answer: str) -> bool:
        """Take the address that a browser was sent to. False where it is no answer to our login."""
        try:
            query = parse_qs(urlsplit(answer.strip()).query, max_num_fields=50)
        except ValueError:
            return False
        given = {name: values[0] for name, values in query.items()}
        if not self._state or given.get("state") != self._state or self._came.is_set():
            return False
        if code := given.get("code"):
            self._result = AuthorizationCodeResult(code=code, state=given["state"], iss=given.get("iss"))
        elif error := given.get("error"):
            self._error = f"{error[:60]!r}: {given.get('error_description', '')[:200]!r}"
        else:
            return False
        self._came.set()
        return True

    async def came_back(self) -> AuthorizationCodeResult:
        """Wait for it. Raises `LoginRefused`."""
        await self._came.wait()
        if self._result is None:
            raise LoginRefused(f"the authorization server said no: {self._error}")
        return self._result

    async def serve(self, stream: SocketStream) -> None:
        """Answer one connection."""
        async with stream:
            status, text = "400 Bad Request", "This is not the answer to a login."
            with anyio.move_on_after(_READ_S):
                head = await _head_of(stream)
                request, host = _REQUEST.match(head), _HOST.search(head)
                port = stream.extra(SocketAttribute.local_port)
                is_ours = host is not None and host[1] in (f"127.0.0.1:{port}".encode(), f"localhost:{port}".encode())
                path = request[1].decode("ascii") if request is not None and is_ours else ""
                if path.partition("?")[0] == PATH and self.take(path):
                    status, text = "200 OK", "Thank you. You can close this page and go back to goat-mcp."
                body = f"<!doctype html><title>goat-mcp</title><p>{text}</p>\n"
                head_of_answer = f"HTTP/1.1 {status}\r\n{_HEADERS}content-length: {len(body)}\r\n\r\n"
                await stream.send((head_of_answer + body).encode())


async def _head_of(stream: SocketStream) -> bytes:
    head = b""
    while b"\r\n\r\n" not in head and len(head) < _MAX_HEAD_BYTES:
        try:
            head += await stream.receive()
        except anyio.EndOfStream:
            break
    return head


@asynccontextmanager
async def redirect_listener(port: int = 0) -> AsyncGenerator[RedirectListener]:
    """Listen on 127.0.0.1 until the block ends; 0 is any free port. Raises `OSError` for one that is taken."""
    async with await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=port) as listener:
        bound = listener.extra(SocketAttribute.local_port)
        waiting = RedirectListener(f"http://127.0.0.1:{bound}{PATH}")

        async def serve(stream: SocketStream) -> None:
            try:
                await waiting.serve(stream)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
                return

        failure: Exception | None = None
        async with anyio.create_task_group() as group:
            group.start_soon(listener.serve, serve)
            try:
                yield waiting
            except Exception as raised:
                # Kept for after the group: raised inside, it would arrive as an exception group.
                failure = raised
            group.cancel_scope.cancel()
        if failure is not None:
            raise failure


def free_port(configured: int, last: int) -> int:
    """The port to come back to: as configured, or the one of the last time if it is free. 0 is any."""
    if configured:
        return configured
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", last))
        except OSError:
            return 0
    return last


LOGIN_S = 300.0
"""How long somebody may take at the login page: as long as a call that waits for an answer is kept (ERA-5)."""
LOOK_S = 1.0


class PendingLogin:
    """`run` is its task. To the flow it is the person: one whose browser is elsewhere.

    `load` gives the login, with all its code; `stored` changes when somebody else has logged in. `scopes` are asked
    for beside the usual ones.
    """

    def __init__(
        self, load: Callable[[], UpstreamLogin], stored: Callable[[], object], endpoint: HttpEndpoint, scopes: str
    ) -> None:
        self.url = ""
        """Where to log in; empty as long as it is not known."""
        self.known = anyio.Event()
        """Set once there is an address, or never will be."""
        self.over = anyio.Event()
        self.over_s = 0.0
        """When that was, on the monotonic clock."""
        self.is_done = False
        self.problem = ""
        """Why it came to nothing."""
        self._load = load
        self._endpoint = endpoint
        self.scopes = scopes
        self._stored = stored
        self._listener: RedirectListener | None = None
        self._scope = anyio.CancelScope()
        self._is_back = False

    async def run(self) -> None:
        """Live until somebody has logged in, or it has come to nothing. What it listened at is closed then."""
        try:
            with self._scope:
                await self._log_in()
        finally:
            self.over_s = time.monotonic()
            self.known.set()
            self.over.set()

    def give_up(self) -> None:
        """Nobody wants it any more. Somebody who has come back is let in all the same: it is a matter of moments."""
        if not self._is_back:
            self._scope.cancel()

    async def _log_in(self) -> None:
        login = self._load()
        configured = self._endpoint.oauth.redirect_port if self._endpoint.oauth is not None else 0
        try:
            before = await login.stored_token(self.scopes)
            _, challenge = await login.asked_for(self._endpoint.headers)
            port = free_port(configured, await login.last_redirect_port())
            async with redirect_listener(port) as self._listener, anyio.create_task_group() as group:
                group.start_soon(self._notice_others, login, before, group.cancel_scope)
                await self._log_in_here(login, challenge)
                group.cancel_scope.cancel()
        except (LoginRefused, AuthServerDown) as problem:
            self.problem = str(problem)
        except OSError as taken:
            self.problem = f"a browser has no port to come back to: {taken.strerror or taken}"

    async def _log_in_here(self, login: UpstreamLogin, challenge: str) -> None:
        try:
            await login.log_in(self, challenge=challenge, scopes=self.scopes)
            self.is_done = True
        except (LoginRefused, AuthServerDown) as problem:
            self.problem = str(problem)
        except LockTimeout:
            self.problem = "another process has been renewing it for a while"
        except OSError as failed:
            self.problem = f"its tokens could not be kept: {failed.strerror or failed}"

    async def _notice_others(self, login: UpstreamLogin, before: str | None, here: anyio.CancelScope) -> None:
        """Whoever logs in at a terminal meanwhile has done it for the calls that wait here, too."""
        seen = self._stored()
        while True:
            await anyio.sleep(LOOK_S)
            if (now := self._stored()) == seen:
                continue
            seen = now
            if await login.stored_token(self.scopes) not in (None, before):
                self.is_done = True
                here.cancel()

    # What the flow asks of a person

    @property
    def redirect_uri(self) -> str:
        assert self._listener is not None
        return self._listener.redirect_uri

    async def visit(self, url: str) -> None:
        assert self._listener is not None
        self._listener.expect(url)
        self.url = url
        self.known.set()

    async def came_back(self) -> AuthorizationCodeResult:
        assert self._listener is not None
        with anyio.move_on_after(LOGIN_S):
            brought = await self._listener.came_back()
            self._is_back = True
            return brought
        raise LoginRefused(f"nobody logged in within {LOGIN_S:g} s")
