"""Streamable HTTP: both protocol eras on one endpoint, behind the guard and a bearer token."""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import os
import socket
import stat
from collections.abc import Callable, Collection, Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import uvicorn
from mcp.server.auth.provider import TokenVerifier
from mcp.server.auth.settings import AuthSettings
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl
from starlette.middleware import Middleware
from starlette.types import ASGIApp

from goat_mcp.core import platform
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.lazy import Lazy
from goat_mcp.server.adapter import Adapter
from goat_mcp.server.http.body import StrictBody
from goat_mcp.server.http.connections import Connections, GuardedProtocol, PrincipalConnections, possible_connections
from goat_mcp.server.http.fast_path import HttpFastPath
from goat_mcp.server.http.guard import MCP_PATH, HttpGuard
from goat_mcp.server.http.health import Health
from goat_mcp.server.http.page import MountedPage
from goat_mcp.server.http.principal_limits import FairShares, PrincipalRateLimiter, PrincipalRates
from goat_mcp.server.http.sessions import PrincipalSessions
from goat_mcp.server.http.socket_user import AF_UNIX
from goat_mcp.server.http.stream_events import RETRY_MS, StreamEvents
from goat_mcp.server.http.token import StaticToken
from goat_mcp.server.replicas.gate import HopPrincipals
from goat_mcp.server.replicas.this_replica import ThisReplica
from goat_mcp.settings.identity import IdentitySettings
from goat_mcp.settings.settings import LimitSettings, Settings

if TYPE_CHECKING:  # loaded if there is a provider
    from goat_mcp.server.identity.resource_server import ResourceServer

GRACEFUL_SHUTDOWN_S = 1
KEPT_IDLE_S = 5
KEPT_FOR_BALANCER_S = 65
"""Longer than load balancers keep a connection that says nothing (60 s): a request must not meet its end."""
SESSION_IDLE_TIMEOUT_S = 1800.0
WAITING_CONNECTIONS = 1024
ACCEPTED_AT_A_TIME = 32
"""Fewer than may be without a token, so that each is read before it has to make room for others."""


@dataclass(frozen=True)
class Address:
    """Where to listen: a host and port, or a Unix socket."""

    host: str = ""
    port: int = 0
    socket_path: Path | None = None

    @property
    def is_loopback(self) -> bool:
        if self.socket_path is not None or self.host == "localhost":
            return True
        return ipaddress.ip_address(self.host).is_loopback


def parse_address(text: str, flag: str = "--http") -> Address:
    """`HOST:PORT`, `[IPV6]:PORT` or, for `--http`, `unix:PATH`. Raises `ToolError(CONFIG)`."""
    if text.startswith("unix:") and flag == "--http":
        return Address(socket_path=Path(text.removeprefix("unix:")).expanduser().absolute())
    host, separator, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    remedy = f"Write e.g. {flag} 127.0.0.1:8765"
    remedy += " or --http unix:/run/user/1000/goat.sock." if flag == "--http" else "."
    if not separator or not host or not port.isdigit() or int(port) > 65535:
        raise ToolError(
            ErrorCode.CONFIG, f"{flag} {text!r} is not HOST:PORT{' or unix:PATH' if flag == '--http' else ''}", remedy
        )
    if host != "localhost":
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            raise ToolError(ErrorCode.CONFIG, f"{flag} {text!r}: {host!r} is not an IP address", remedy) from None
        if address.is_unspecified:
            raise ToolError(ErrorCode.CONFIG, f"{flag} {text!r} would listen on every address; name one", remedy)
    return Address(host=host, port=int(port))


def check_identity(settings: Settings, address: Address, *, no_token: bool) -> None:
    """Raises `ToolError(CONFIG)` for settings of a provider that let in too many, or nobody."""
    identity = settings.identity
    remedy = "Change the settings identity.* and start again."
    if no_token:
        raise ToolError(
            ErrorCode.CONFIG,
            "identity.issuer says whose tokens count, and --no-token lets everybody in",
            "Leave --no-token or identity.issuer out.",
        )
    if address.socket_path is not None and not identity.resource:
        raise ToolError(
            ErrorCode.CONFIG,
            f"clients of {address.socket_path} need a URL for which the provider gives them tokens",
            "Set identity.resource, for example to https://mcp.example.com/mcp.",
        )
    wanted = {identity.profile, *identity.profile_of_group.values()} - {""}
    if missing := sorted(wanted - set(settings.profiles)):
        raise ToolError(ErrorCode.CONFIG, f"identity.* names the profile {missing[0]!r}, which there is not", remedy)


class UvicornServer(uvicorn.Server):
    """Leaves signals to us, and lets many connections wait in the system while it accepts few at a time."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or []:
            listener.listen(WAITING_CONNECTIONS)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


def guarded_server(
    app: ASGIApp,
    shares: FairShares,
    limits: LimitSettings,
    *,
    has_lifespan: bool,
    kept_idle_s: int = KEPT_IDLE_S,
) -> UvicornServer:
    """`app` behind the limits of connections, heads and bodies (R-HTTP-4)."""
    connections = Connections(shares, header_deadline_s=limits.header_deadline_s, body_bytes=limits.body_bytes)
    config = uvicorn.Config(
        app,
        http=type("ServersProtocol", (GuardedProtocol,), {"registry": connections}),
        ws="none",
        lifespan="on" if has_lifespan else "off",
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=ACCEPTED_AT_A_TIME,
        timeout_keep_alive=kept_idle_s,
        timeout_graceful_shutdown=GRACEFUL_SHUTDOWN_S,
    )
    return UvicornServer(config)


@dataclass
class HttpServer:
    """One listening endpoint over one adapter. `token` None serves without a token."""

    adapter: Adapter
    address: Address
    token: str | None
    limits: LimitSettings
    profile_tokens: Mapping[str, str] = field(default_factory=dict[str, str])
    """By profile, where it has one of its own."""

    page: MountedPage | None = None
    public_hosts: frozenset[str] = frozenset()
    """See `HttpSettings`. The page is not shown there."""

    identity: IdentitySettings = field(default_factory=IdentitySettings)

    replica: ThisReplica | None = None
    """If it is one of several. Set before `serve`."""

    def __post_init__(self) -> None:
        self.rates = PrincipalRates(self.limits.calls_per_s)
        self._server: UvicornServer | None = None
        self._socket: socket.socket | None = None
        self._is_kept = False
        self._is_stopping = False
        self._sessions = self._connections = FairShares(0)

    @property
    def port(self) -> int:
        """0 on a Unix socket."""
        assert self._socket is not None, "bind() comes first"
        return 0 if self.address.socket_path is not None else self._socket.getsockname()[1]

    @property
    def origin(self) -> str:
        """Like `http://127.0.0.1:8765`; empty on a Unix socket."""
        return f"http://{_host_text(self.address.host)}:{self.port}" if self.address.socket_path is None else ""

    def counts(self) -> dict[str, float]:
        """What is open now, for metrics."""
        return {
            "sessions": len(self._sessions),
            "connections": len(self._connections),
            "calls_suspended": len(self.adapter.suspended),
        }

    def bind(self, listener: int | None = None) -> None:
        """Take the address, or the descriptor of a socket that listens there already. Raises `ToolError(CONFIG)`."""
        if listener is None:
            self._socket = bound_socket(self.address)
            return
        os.set_inheritable(listener, False)
        self._socket = socket.socket(fileno=listener)
        self._socket.setblocking(False)

    def keep_listening(self) -> int:
        """A descriptor of the socket that `close` leaves open: whoever connects waits for the next process."""
        assert self._socket is not None, "bind() comes first"
        self._is_kept = True
        return os.dup(self._socket.fileno())

    def app(self, port: int) -> ASGIApp:
        """The ASGI application as it is served on `port`."""
        ours: TokenVerifier | None = StaticToken(self.token, self.profile_tokens) if self.token is not None else None
        principals = HopPrincipals(ours) if ours is not None and self.replica is not None else None
        ours = principals or ours
        provider = self._provider(port) if ours is not None and self.identity.is_on else None
        # Tokens of ours alone: hosts that are offered a login would not send the one that they are configured with.
        is_checked_by_sdk = ours is not None and provider is None
        hosts = served_hosts(self.address, port)
        auth = AuthSettings(issuer_url=AnyHttpUrl("http://localhost"), resource_server_url=None)
        self._sessions = self._shares(self.limits.sessions)
        events = StreamEvents()
        inner = self.adapter.server.streamable_http_app(
            streamable_http_path=MCP_PATH,
            event_store=events,
            retry_interval=RETRY_MS,
            max_request_body_size=self.limits.body_bytes,
            max_sessions=self.limits.sessions,
            session_idle_timeout=None,  # `PrincipalSessions` ends idle ones
            # The guard has checked Host and Origin exactly; the SDK's check is looser than that.
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
            auth=auth if is_checked_by_sdk else None,
            token_verifier=ours if is_checked_by_sdk else None,
        )
        needs_token = self.token is not None
        # The last ones: behind the reading of the token.
        inner.user_middleware += [
            *(provider.middleware(ours) if provider is not None and ours is not None else ()),
            Middleware(PrincipalConnections, needs_token=needs_token),
            Middleware(PrincipalRateLimiter, rates=self.rates, needs_token=needs_token),
            Middleware(StrictBody, max_bytes=self.limits.body_bytes, needs_token=needs_token),
            *([self._approvals()] if provider is not None else ()),
            *self._routing(needs_token=needs_token),
            Middleware(
                PrincipalSessions,
                shares=self._sessions,
                idle_timeout_s=SESSION_IDLE_TIMEOUT_S,
                needs_token=needs_token,
                events=events,
            ),
            Middleware(HttpFastPath, calls=self.adapter.plain_calls(), needs_token=needs_token),
        ]
        page = self.page if self.address.socket_path is None else None  # no browser opens a socket
        if page is not None:
            where = urlsplit(self.identity.resource)
            page.serve_at(
                f"http://{_host_text(self.address.host)}:{port}",
                hosts,
                is_loopback=self.address.is_loopback,
                public_origin=f"{where.scheme}://{where.netloc}" if where.netloc else "",
            )
        public = dict.fromkeys(provider.metadata.paths, provider.metadata) if provider is not None else {}
        public_hosts = self.public_hosts | {urlsplit(self.identity.resource).netloc.lower()} - {""}
        guard = HttpGuard(inner, hosts, self._profiles, public_hosts, public, provider is not None, page)
        app: ASGIApp = guard
        if self.replica is not None:
            app = self.replica.gate(app, {MCP_PATH: guard.pass_on}, principals, self.limits.body_bytes)
        return Health(app, self._why_unready)

    def _routing(self, *, needs_token: bool) -> list[Middleware]:
        if self.replica is None:
            return []
        return [self.replica.routing(self.adapter.replica_of_state, needs_token=needs_token)]

    def _why_unready(self) -> str:
        """In one word; empty if it should be sent requests."""
        if self._is_stopping or (self.replica is not None and self.replica.leaving.has_begun):
            return "leaving"
        return self.replica.why_unready if self.replica is not None else ""

    def _approvals(self) -> Middleware:
        from goat_mcp.gateway.approvals.user_queue import approval_queue
        from goat_mcp.server.identity.approvals_api import ApprovalsApi

        gateway = self.adapter.gateway
        queue = Lazy(lambda: approval_queue(gateway.state, redactor=gateway.redactor, warn=gateway.telemetry.warning))
        page = self.page if self.address.socket_path is None else None
        link = page.link_for if page is not None else None
        return Middleware(ApprovalsApi, queue=queue, page_link=link, approve_scope=self.identity.approve_scope)

    def _profiles(self) -> Collection[str]:
        """Those that there are now."""
        return self.adapter.gateway.settings.profiles.keys()

    def _provider(self, port: int) -> ResourceServer:
        from goat_mcp.server.identity.resource_server import ResourceServer

        services = self.adapter.gateway.services
        resource = self.identity.resource or f"http://{_host_text(self.address.host)}:{port}{MCP_PATH}"
        return ResourceServer(self.identity, resource, services.http, self._profiles, services.telemetry.warning)

    def _shares(self, capacity: int) -> FairShares:
        """A quarter is kept from each principal for the others, if there are any."""
        return FairShares(capacity, capacity // 4 if self.profile_tokens or self.identity.is_on else 0)

    def close(self) -> None:
        """Give the address back."""
        if self._socket is not None:
            self._socket.close()
            if self.address.socket_path is not None and not self._is_kept:
                self.address.socket_path.unlink(missing_ok=True)

    async def serve(self, on_listening: Callable[[str], None]) -> None:
        """Serve the bound address until `stop`. Calls `on_listening` with the URL once clients can connect."""
        assert self._socket is not None, "bind() comes first"
        try:
            self._connections = self._shares(possible_connections(self.limits.connections))
            self._server = guarded_server(
                self.app(self.port),
                self._connections,
                self.limits,
                has_lifespan=True,
                kept_idle_s=KEPT_FOR_BALANCER_S if self.public_hosts else KEPT_IDLE_S,
            )
            where = self.address.socket_path
            on_listening(f"unix:{where}" if where else f"{self.origin}{MCP_PATH}")
            await self._server.serve(sockets=[self._socket])
        finally:
            self.close()

    def stop(self) -> None:
        """Begin a graceful end: open streams get a clean close, then the listener goes."""
        self._is_stopping = True
        self.adapter.changes.close()
        if self.page is not None:
            self.page.close()
        # It would dump a traceback of each call that is ended.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        if self._server is not None:
            self._server.should_exit = True


def served_hosts(address: Address, port: int) -> frozenset[str]:
    """What requests for an address have in `Host`."""
    if address.socket_path is not None:
        return frozenset({"localhost"})
    names = {"127.0.0.1", "localhost", "[::1]"} if address.is_loopback else {_host_text(address.host)}
    return frozenset(f"{name}:{port}" for name in names)


_ONLY_OURS = -5
"""SO_EXCLUSIVEADDRUSE. With SO_REUSEADDR any program on Windows could take our address while we listen on it."""


def bound_socket(address: Address) -> socket.socket:
    """A socket that listens there. Raises `ToolError(CONFIG)`."""
    path = address.socket_path
    try:
        if path is None:
            family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
            # Named TCP, or asyncio leaves Nagle's delay on: 40 ms for a small answer.
            listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
            listener.setsockopt(
                socket.SOL_SOCKET, _ONLY_OURS if platform.SYSTEM == "windows" else socket.SO_REUSEADDR, 1
            )
            listener.bind((address.host, address.port))
        else:
            if not (platform.HAS_FILE_MODES and platform.HAS_UNIX_SOCKETS):
                raise ToolError(
                    ErrorCode.CONFIG,
                    f"cannot listen on {path}: on this system nothing would keep other users from it",
                    "Name an address: 127.0.0.1:PORT.",
                )
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if stat.S_IMODE(path.parent.stat().st_mode) & 0o077:
                raise ToolError(
                    ErrorCode.CONFIG,
                    f"{path.parent} can be entered by others, so the socket in it would not be private",
                    "Name a socket in a folder that only you can enter (mode 0700).",
                )
            listener = socket.socket(AF_UNIX, socket.SOCK_STREAM)
            listener.bind(str(path))
            os.chmod(path, 0o600)  # noqa: PTH101  # the path was just bound; nothing to resolve
    except OSError as problem:
        where = path or f"{address.host}:{address.port}"
        raise ToolError(
            ErrorCode.CONFIG,
            f"cannot listen on {where}: {problem.strerror}",
            "Choose another address, or stop the program that has it.",
        ) from None
    listener.listen(128)
    listener.setblocking(False)
    return listener


def _host_text(host: str) -> str:
    return f"[{host}]" if ":" in host else host
