"""One login under way: the address a browser opens, where it comes back to, and how it ended.

Who is shown the address, and who waits for the end, is `calls.offered_login`'s business. Contract: AUT-3.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import anyio

from goat_mcp.state.file_lock import LockTimeout
from goat_mcp.upstreams.oauth.login_problems import AuthServerDown, LoginRefused
from goat_mcp.upstreams.oauth.redirect_listener import RedirectListener, free_port, redirect_listener

if TYPE_CHECKING:
    from mcp.shared.auth import AuthorizationCodeResult

    from goat_mcp.upstreams.config.entry import HttpEndpoint
    from goat_mcp.upstreams.oauth.upstream_login import UpstreamLogin

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
