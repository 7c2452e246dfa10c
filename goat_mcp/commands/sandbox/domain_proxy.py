"""The proxy for sandboxes with the network `domains`: only the named hosts, only public addresses.

It sees names (of CONNECT, of plain HTTP URLs), not what goes through a tunnel: a server with many hosts at one address
can be asked for another one inside TLS. Runs in the gateway's event loop. `proxy_connection` parses and relays one
request. In a sandbox with its own network, `linux_confined_start` makes the listening socket, and
`linux_inner_server` serves it.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import secrets
import socket
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress

from goat_mcp.commands.sandbox.confinement import InnerListener, ProxyAccess
from goat_mcp.commands.sandbox.launcher import launcher_command, launcher_needs
from goat_mcp.commands.sandbox.linux_inner_server import InnerServer, Serve
from goat_mcp.commands.sandbox.options import host_is_among
from goat_mcp.commands.sandbox.proxy_connection import (
    MAX_HEAD_BYTES,
    BadRequest,
    ProxyRequest,
    Relay,
    read_request,
)
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.web.http.resolver import Resolve, SystemResolver, addresses_to_dial
from goat_mcp.web.http.target import Target

INNER_PORT = 3128
"""The proxy's port in a network of its own, in which no port is taken."""
MAX_CONNECTIONS = 192
"""At a time, of all sandboxes; each needs two of our descriptors."""
MAX_CONNECTIONS_OF_ONE = 64
_HEAD_S = 20.0
_DIAL_S = 10.0
_MAX_ADDRESSES = 4
_SHOWN_DOMAINS = 8


class _Refused(Exception):
    """An answer of the proxy itself. `status` is the code and its phrase, which most programs show."""

    def __init__(self, status: str, why: str, headers: str = "") -> None:
        super().__init__(why)
        self.status, self.headers = status, headers


class DomainProxy:
    """One per gateway. `start` and `stop` in the event loop it works for.

    `private` are `host:port` entries that may have private addresses. A connection on which nothing moves for `idle_s`
    is ended.
    """

    def __init__(
        self,
        domains: Collection[str],
        *,
        private: Collection[str] = (),
        resolve: Resolve | None = None,
        idle_s: float = 300.0,
    ) -> None:
        self._domains = tuple(domains)
        self._private = tuple(private)
        self._resolve = resolve or SystemResolver()
        self._idle_s = idle_s
        self._clients: set[asyncio.Task[None]] = set()
        self._inner_servers: set[InnerServer] = set()
        self._shared: asyncio.Server | None = None

    async def start(self) -> ProxyAccess:
        """Listen on a port of 127.0.0.1, with a password, and be ready for sandboxes with a network of their own."""
        loop = asyncio.get_running_loop()
        password = secrets.token_urlsafe(32)
        self._shared = await asyncio.start_server(
            self._serving(password), "127.0.0.1", 0, limit=MAX_HEAD_BYTES, backlog=MAX_CONNECTIONS
        )
        port: int = self._shared.sockets[0].getsockname()[1]

        def listen_inside() -> InnerListener:
            return self._listen_inside(loop)

        return ProxyAccess(
            port=port,
            environment=_proxy_variables(f"http://goat-mcp:{password}@127.0.0.1:{port}"),
            listen_inside=listen_inside,
        )

    async def stop(self) -> None:
        """End every connection, and stop listening in sandboxes."""
        if self._shared is not None:
            self._shared.close()
            self._shared = None
        for server in tuple(self._inner_servers):
            server.close()
        clients = tuple(self._clients)
        for client in clients:
            client.cancel()
        await asyncio.gather(*clients, return_exceptions=True)

    def _listen_inside(self, loop: asyncio.AbstractEventLoop) -> InnerListener:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        server = InnerServer(ours, self._serving(""), self._inner_servers)

        def in_loop(what: Callable[[], None]) -> None:
            with suppress(RuntimeError):  # the loop is closed, and everything with it
                loop.call_soon_threadsafe(what)

        in_loop(server.wait)
        descriptor = theirs.detach()
        return InnerListener(
            launcher=(*launcher_command("linux_confined_start", "listener_main"), str(descriptor), str(INNER_PORT)),
            readable=launcher_needs(),
            descriptor=descriptor,
            environment=_proxy_variables(f"http://127.0.0.1:{INNER_PORT}"),
            close=lambda: in_loop(server.close),
        )

    def _serving(self, password: str) -> Serve:
        own: set[asyncio.Task[None]] = set()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            client = asyncio.current_task()
            assert client is not None
            is_full = len(self._clients) >= MAX_CONNECTIONS or len(own) >= MAX_CONNECTIONS_OF_ONE
            self._clients.add(client)
            own.add(client)
            try:
                await self._serve(reader, writer, password, is_full=is_full)
            except asyncio.CancelledError:
                pass  # by `stop`, or with its inner server; asyncio would report it as a failure of ours
            finally:
                self._clients.discard(client)
                own.discard(client)
                writer.transport.abort()

        return serve

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, password: str, *, is_full: bool
    ) -> None:
        try:
            if is_full:
                raise _Refused(
                    "503 Too many connections",
                    f"at a time: {MAX_CONNECTIONS_OF_ONE} connections of one command, {MAX_CONNECTIONS} of all",
                )
            request = await _read_request(reader)
            _check_password(request, password)
            self._check_host(request.target)
            addresses = await self._addresses(request.target)
            upstream = await _dial(request.target, addresses)
        except _Refused as refused:
            await _answer(writer, refused)
            return
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            return  # the program has gone, or sent nothing
        relay = Relay((reader, writer), upstream, self._idle_s)
        if request.is_tunnel:
            await relay.tunnel()
        else:
            await relay.one_request(request)

    def _check_host(self, target: Target) -> None:
        if not host_is_among(target.host, self._domains):
            shown = ", ".join(self._domains[:_SHOWN_DOMAINS]) or "none"
            more = f" and {len(self._domains) - _SHOWN_DOMAINS} more" if len(self._domains) > _SHOWN_DOMAINS else ""
            raise _Refused(
                f"403 {target.host} is not in sandbox_domains",
                f"{target.host} is not among the hosts that sandboxed commands may reach: {shown}{more}. "
                f"The user can allow it with the setting sandbox_domains: [{target.host!r}].",
            )

    async def _addresses(self, target: Target) -> Sequence[str]:
        may_be_private = target.is_among(self._private)
        try:
            return await addresses_to_dial(target, self._resolve, may_be_private=may_be_private)
        except ToolError as problem:
            if problem.code is not ErrorCode.ADDRESS:
                raise _Refused(f"502 {target.host} cannot be resolved", problem.message) from None
            raise _Refused(
                f"403 {target.host} has no public address",
                f"{problem.message}. With sandbox_network=domains commands reach public addresses only.",
            ) from None


def _proxy_variables(proxy: str) -> Mapping[str, str]:
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    variables = {spelled: proxy for name in names for spelled in (name, name.lower())}
    own = "localhost,127.0.0.1,::1"
    # Node reads the others only if NODE_USE_ENV_PROXY is set.
    return {**variables, "NO_PROXY": own, "no_proxy": own, "NODE_USE_ENV_PROXY": "1"}


async def _read_request(reader: asyncio.StreamReader) -> ProxyRequest:
    try:
        async with asyncio.timeout(_HEAD_S):
            head = await reader.readuntil(b"\r\n\r\n")
        return read_request(head)
    except asyncio.LimitOverrunError:
        raise _Refused("431 Too long", f"a request has at most {MAX_HEAD_BYTES} bytes before its body") from None
    except BadRequest as problem:
        raise _Refused("400 Bad Request", str(problem)) from None


def _check_password(request: ProxyRequest, password: str) -> None:
    if password and not hmac.compare_digest(request.password.encode(), password.encode()):
        raise _Refused(
            "407 Proxy Authentication Required",
            "this proxy is for sandboxed commands only",
            'Proxy-Authenticate: Basic realm="goat-mcp"\r\n',
        )


async def _dial(target: Target, addresses: Sequence[str]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    problem = "it has no address"
    for address in addresses[:_MAX_ADDRESSES]:
        try:
            async with asyncio.timeout(_DIAL_S):
                return await asyncio.open_connection(address, target.port)
        except TimeoutError:
            problem = f"no answer within {_DIAL_S:g} s"
        except OSError as failed:
            problem = os.strerror(failed.errno) if failed.errno else str(failed)
    raise _Refused(f"502 {target.host} cannot be reached", f"{target.host}:{target.port} cannot be reached: {problem}")


async def _answer(writer: asyncio.StreamWriter, refused: _Refused) -> None:
    body = f"goat-mcp: {refused}\n".encode("utf-8", "replace")
    head = (
        f"HTTP/1.1 {refused.status}\r\n{refused.headers}Content-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(_DIAL_S):
            writer.write(head.encode("ascii", "replace") + body)
            await writer.drain()
            writer.write_eof()
            writer.close()
            await writer.wait_closed()
