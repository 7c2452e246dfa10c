"""The page beside `/mcp`, made when somebody first opens it: a server whose page nobody opens loads nothing of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from starlette.types import ASGIApp, Receive, Scope, Send

from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.http.connections import PrincipalConnections
from goat_mcp.server.http.guard import PAGE_PATH

if TYPE_CHECKING:
    from goat_mcp.gateway.approvals.viewer import Viewer
    from goat_mcp.server.ui.hosts import Hosts
    from goat_mcp.server.ui.parts import UiParts


class MountedPage:
    """The page of the running `gateway`, with its own login: the token of `/mcp` opens nothing here."""

    def __init__(self, gateway: Gateway, hosts_here: Callable[[], Hosts] | None = None) -> None:
        self._gateway = gateway
        self._hosts_here = hosts_here
        self._making = anyio.Lock()
        self._app: ASGIApp | None = None
        self._parts: UiParts | None = None
        self._where: tuple[str, frozenset[str], bool] = ("", frozenset(), True)
        self._public_origin = ""

    def serve_at(self, origin: str, hosts: frozenset[str], *, is_loopback: bool, public_origin: str = "") -> None:
        """`hosts` are the Host headers that it is served at; links lead to `origin`, those for people whom an identity
        provider knows to `public_origin`."""
        self._public_origin = public_origin.lower()
        self._where = (origin, hosts, is_loopback)
        self._gateway.services.page_url = f"{origin}{PAGE_PATH}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._making:
            if self._app is None:
                self._app = await anyio.to_thread.run_sync(self._made)
        await self._app(scope, receive, send)

    def link_for(self, viewer: Viewer) -> str:
        """A link that logs somebody in, once. Blocking. Raises `OSError`."""
        from goat_mcp.server.ui.login import LoginLinks

        return LoginLinks(self._gateway.state, self._public_origin or self._where[0]).new(viewer=viewer)

    def close(self) -> None:
        """The server stops: streams of open pages end."""
        if self._parts is not None:
            self._parts.changes.close()

    def _made(self) -> ASGIApp:
        from goat_mcp.gateway.approvals.user_queue import approval_queue
        from goat_mcp.server.ui.app import ui_app
        from goat_mcp.server.ui.parts import UiParts

        async def gateway() -> Gateway:
            return self._gateway

        origin, hosts, is_loopback = self._where
        telemetry, redactor, state = self._gateway.telemetry, self._gateway.redactor, self._gateway.state
        self._parts = UiParts(
            state=state,
            queue=approval_queue(state, redactor=redactor, warn=telemetry.warning),
            origin=origin,
            public_origin=self._public_origin,
            gateway=gateway,
            hosts=self._hosts_here() if self._hosts_here is not None else None,
            redactor=redactor,
            unexpected=telemetry.unexpected,
        )
        return ui_app(
            self._parts,
            hosts,
            is_loopback=is_loopback,
            behind_login=lambda app: PrincipalConnections(app, needs_token=False),
        )
