"""The endpoint that Prometheus reads, `/metrics`, at an address of its own: clients of `/mcp` do not reach it."""

from __future__ import annotations

import hmac
import socket
from collections.abc import Awaitable, Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from goat_mcp.calls.observability.options import MetricsOptions
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.server.http.connections import PrincipalConnections
from goat_mcp.server.http.guard import Refusal
from goat_mcp.server.http.principal_limits import FairShares
from goat_mcp.server.http.server import UvicornServer, bound_socket, guarded_server, parse_address, served_hosts
from goat_mcp.server.http.token import read_or_create_token
from goat_mcp.settings.settings import LimitSettings

METRICS_PATH = "/metrics"
MAX_CONNECTIONS = 16
Render = Callable[[], Awaitable[bytes]]
_UNAUTHORIZED = Refusal(401, "show the metrics token", ((b"www-authenticate", b"Bearer"),))


class MetricsServer:
    """Takes its address at once. Raises `ToolError(CONFIG)` for one that cannot be used, or that wants a token."""

    def __init__(self, options: MetricsOptions, limits: LimitSettings) -> None:
        address = parse_address(options.listen, "metrics.listen")
        if options.token_file is None and not address.is_loopback:
            raise ToolError(
                ErrorCode.CONFIG,
                f"metrics.listen {options.listen!r}: other machines reach it, and it has no token",
                "Name a file in metrics.token_file, which is made with a new token, or listen on 127.0.0.1.",
            )
        self._token = None if options.token_file is None else read_or_create_token(options.token_file.expanduser())
        self._limits = limits
        self._address = address
        self._socket: socket.socket = bound_socket(address)
        self._server: UvicornServer | None = None

    @property
    def url(self) -> str:
        host = f"[{self._address.host}]" if ":" in self._address.host else self._address.host
        return f"http://{host}:{self._socket.getsockname()[1]}{METRICS_PATH}"

    async def serve(self, render: Render, content_type: str) -> None:
        """Until `stop`. `render` makes the text for each request."""
        hosts = served_hosts(self._address, self._socket.getsockname()[1])
        app = PrincipalConnections(_MetricsApp(render, content_type), needs_token=False)
        guarded = _MetricsGuard(app, hosts, self._token)
        self._server = guarded_server(guarded, FairShares(MAX_CONNECTIONS), self._limits, has_lifespan=False)
        try:
            await self._server.serve(sockets=[self._socket])
        finally:
            self._socket.close()

    def stop(self) -> None:
        if self._server is not None:
            self._server.should_exit = True


class _MetricsGuard:
    """Lets a request through that names our address and shows the token."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str], token: str | None) -> None:
        self._app = app
        self._hosts = hosts
        self._expected = None if token is None else f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        refusal = self._refusal(scope)
        await (refusal.answer(send) if refusal is not None else self._app(scope, receive, send))

    def _refusal(self, scope: Scope) -> Refusal | None:
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        hosts = [value.decode("latin-1").lower() for name, value in headers if name == b"host"]
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return Refusal(421, "this Host is not served here")
        if any(name == b"origin" for name, _ in headers):
            return Refusal(403, "no page may read this")
        if self._expected is not None:
            shown = [value for name, value in headers if name == b"authorization"]
            if len(shown) != 1 or not hmac.compare_digest(shown[0], self._expected):
                return _UNAUTHORIZED
        if scope["path"] != METRICS_PATH:
            return Refusal(404, "not found")
        return None if scope["method"] == "GET" else Refusal(405, "method not allowed", ((b"allow", b"GET"),))


class _MetricsApp:
    def __init__(self, render: Render, content_type: str) -> None:
        self._render = render
        self._content_type = content_type.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await self._render()
        headers = [(b"content-type", self._content_type), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})
