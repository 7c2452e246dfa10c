"""The connections an httpx client makes here: to an address that was checked just before, by that address (R-NET-2).

The name stays what TLS verifies and what the Host header says, since only the dialling is ours.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import cast

import httpcore
import httpx

from goat_mcp.web.http.target import PORTS, Target

_NEXT_ADDRESS_AFTER_S = 3.0
"""A host's address that does not answer (IPv6 without a route, mostly) must not use up the time of the others."""
_MAX_ADDRESSES = 6

AddressesOf = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses a host and port may be dialled at. Raises if it may not."""


class _CheckedDialling(httpcore.AsyncNetworkBackend):
    def __init__(self, addresses_of: AddressesOf) -> None:
        self._addresses_of = addresses_of
        # Where anyio is missing the library has a stand-in of this name, which hides the type.
        self._inner = cast("httpcore.AsyncNetworkBackend", httpcore.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        addresses = (await self._addresses_of(host, port))[:_MAX_ADDRESSES]
        for address in addresses[:-1]:
            try:
                return await self._inner.connect_tcp(address, port, _NEXT_ADDRESS_AFTER_S)
            except (httpcore.NetworkError, httpcore.TimeoutException):
                continue
        return await self._inner.connect_tcp(addresses[-1], port, timeout)

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None
    ) -> httpcore.AsyncNetworkStream:
        raise httpcore.UnsupportedProtocol("Unix sockets are never dialled")

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


class _Body(httpx.AsyncByteStream):
    def __init__(self, stream: AsyncIterator[bytes], aclose: Callable[[], Awaitable[None]]) -> None:
        self._stream = stream
        self._aclose = aclose

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._stream:
            yield part

    async def aclose(self) -> None:
        await self._aclose()


class GuardedTransport(httpx.AsyncBaseTransport):
    """Carries requests to one target, and to no other: a request for another one is a mistake of ours.

    `tls` verifies certificates; there is no way to leave that out.
    """

    def __init__(
        self, target: Target, addresses_of: AddressesOf, tls: ssl.SSLContext | None, proxy: httpcore.Proxy | None
    ) -> None:
        self._target = target
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=tls, proxy=proxy, network_backend=_CheckedDialling(addresses_of), max_connections=1
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        target = self._target
        assert isinstance(request.stream, httpx.AsyncByteStream)
        place = httpcore.URL(
            scheme=target.scheme,
            host=target.host,
            # A proxy is told the whole URL, in which the usual port does not stand.
            port=None if target.port == PORTS[target.scheme] else target.port,
            target=target.path.encode("ascii"),
        )
        answer = await self._pool.handle_async_request(
            httpcore.Request(
                request.method,
                place,
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx.Response(answer.status, headers=answer.headers, stream=_Body(answer.aiter_stream(), answer.aclose))

    async def aclose(self) -> None:
        await self._pool.aclose()
