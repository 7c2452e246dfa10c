"""One request and its answer, with httpx: built for this one, gone afterwards. Loaded with the first request.

A transport of its own for each request costs less than a millisecond, and a connection that was opened for a host the
user allowed cannot serve a call that may not go there."""

from __future__ import annotations

import re
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from http import HTTPStatus
from typing import Any, cast

import anyio.lowlevel
import httpcore
import httpx

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.version import __version__
from goat_mcp.web.http.addresses import LEADS_TO_ONESELF, why_not_public
from goat_mcp.web.http.decoding import ACCEPTED, BodyDecoder, NotDecodable
from goat_mcp.web.http.domains import host_is_in_domain, looks_like_a_number
from goat_mcp.web.http.resolver import Resolve, addresses_to_dial
from goat_mcp.web.http.target import PORTS, ProxyAddress, Target, parse_proxy, refuse_plain_http, refuse_private_literal
from goat_mcp.web.options import HttpOptions

_NEXT_ADDRESS_AFTER_S = 3.0
"""A host's address that does not answer (IPv6 without a route, mostly) must not use up the time of the others."""
_MAX_ADDRESSES = 6
_READ_BYTES = 65_536
_WRITE_S = 10.0

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
            # A proxy gets the whole URL, without the usual port.
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
        body = _Body(answer.aiter_stream(), answer.aclose)
        extensions = cast("Any", answer).extensions  # its type names no members
        return httpx.Response(answer.status, headers=answer.headers, stream=body, extensions=extensions)

    async def aclose(self) -> None:
        await self._pool.aclose()


_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}\Z")
_HEADER_VALUE = re.compile(r"(?:[!-~](?:[\t -~]*[!-~])?)?\Z")
_CONNECTION_HEADERS = frozenset(
    {"connection", "content-length", "expect", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
)
_PROXY_PREFIX = "proxy-"


def checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """A copy that can be sent as it is. Raises `ToolError(INPUT)`, which shows no value: keys travel in headers."""
    for name, value in headers.items():
        if not _HEADER_NAME.match(name):
            raise ToolError(ErrorCode.INPUT, f"{name[:60]!r} is no name of a header", "Leave it out.")
        if name.lower() in _CONNECTION_HEADERS or name.lower().startswith(_PROXY_PREFIX):
            raise ToolError(
                ErrorCode.INPUT, f"the header {name} is not for a caller to set", "Leave it out: it is set as needed."
            )
        if not _HEADER_VALUE.match(value):
            raise ToolError(
                ErrorCode.INPUT,
                f"the value of the header {name} holds characters that none may",
                "Send printable ASCII on one line, without blanks around it.",
            )
    return dict(headers)


USER_AGENT = f"goat-mcp/{__version__}"
_DEFAULT_HEADERS = {"user-agent": USER_AGENT, "accept": "*/*", "accept-encoding": ACCEPTED, "connection": "close"}
_QUOTED_BYTES = "bytearray("
_TRANSPORT_FAILURES = (
    httpcore.NetworkError,
    httpcore.TimeoutException,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.UnsupportedProtocol,
    httpx.HTTPError,
    httpx.InvalidURL,
    httpx.StreamError,
    OSError,
)


class Exchanges:
    """Makes requests. Holds what is the same for all of them: certificates, the proxy, the resolver."""

    def __init__(self, options: HttpOptions, resolve: Resolve) -> None:
        self._resolve = resolve
        self._tls = httpx.create_ssl_context(trust_env=False)
        if options.ca_file is not None:
            try:
                self._tls.load_verify_locations(options.ca_file)
            except (OSError, ssl.SSLError) as problem:
                raise ToolError(
                    ErrorCode.CONFIG,
                    f"web.ca_file {options.ca_file} cannot be used: {problem}",
                    "Name a file with certificates in PEM format.",
                ) from None
        proxy = options.proxy.get_secret_value()
        self._proxy = self._core_proxy(parse_proxy(proxy)) if proxy else None

    def _core_proxy(self, place: ProxyAddress) -> httpcore.Proxy:
        target = place.target
        return httpcore.Proxy(
            httpcore.URL(scheme=target.scheme, host=target.host, port=target.port, target="/"),
            auth=None if place.login is None else (place.login[0].encode(), place.login[1].encode()),
            ssl_context=self._tls if target.scheme == "https" else None,
        )

    @asynccontextmanager
    async def open(
        self,
        method: str,
        target: Target,
        headers: Mapping[str, str],
        content: bytes | None,
        *,
        is_allowed: bool,
    ) -> AsyncGenerator[HttpResponse]:
        """Send the request and yield what is answered. `is_allowed`: to a private address, too, and over plain http.

        Raises `ToolError`.
        """
        if not is_allowed:
            refuse_private_literal(target)
            refuse_plain_http(target)
        sent_headers = httpx.Headers({"Host": target.authority, **_DEFAULT_HEADERS})
        sent_headers.update(checked_headers(headers))
        # No client of the library: it reads environment and Location whether or not it is to follow them.
        async with self._transport(target, is_allowed) as transport:
            with _failures(target):
                request = httpx.Request(method, _library_url(target), headers=sent_headers, content=content)
                answer = await transport.handle_async_request(request)
            try:
                yield HttpResponse(target, answer)
            finally:
                await answer.aclose()

    @asynccontextmanager
    async def upgraded(
        self, target: Target, headers: Mapping[str, str], *, is_allowed: bool
    ) -> AsyncGenerator[UpgradedConnection]:
        """The connection to a server that goes on with another protocol.

        `headers` say which protocol; they are ours, not a caller's. Raises `ToolError`.
        """
        if not is_allowed:
            refuse_private_literal(target)
            refuse_plain_http(target)
        sent_headers = {"Host": target.authority, "user-agent": USER_AGENT, "connection": "Upgrade", **headers}
        async with self._transport(target, is_allowed) as transport:
            with _failures(target):
                request = httpx.Request("GET", _library_url(target), headers=sent_headers)
                answer = await transport.handle_async_request(request)
            try:
                if answer.status_code != HTTPStatus.SWITCHING_PROTOCOLS:
                    raise ToolError(
                        ErrorCode.NETWORK,
                        f"{target.shown} does not change to the protocol that is wanted (HTTP {answer.status_code})",
                        "Try again later.",
                    )
                stream = cast("httpcore.AsyncNetworkStream", answer.extensions["network_stream"])
                with _failures(target):
                    yield UpgradedConnection(answer.headers, stream)
            finally:
                await answer.aclose()

    def _transport(self, target: Target, may_be_private: bool) -> GuardedTransport:
        tls = self._tls if target.scheme == "https" or self._proxy is not None else None
        if self._proxy is None or (may_be_private and _is_on_this_machine(target)):

            async def addresses_of(host: str, port: int) -> Sequence[str]:
                assert (host, port) == (target.host, target.port), f"asked to dial {host}:{port} for {target.shown}"
                return await addresses_to_dial(target, self._resolve, may_be_private=may_be_private)

            return GuardedTransport(target, addresses_of, tls, None)
        if not may_be_private and _is_on_this_machine(target):
            raise ToolError(ErrorCode.ADDRESS, f"address not public: {target.host} is this machine")
        proxy = self._proxy

        async def address_of_proxy(host: str, port: int) -> Sequence[str]:
            there = Target("http", host, port, "/")
            assert host == proxy.url.host.decode("ascii"), f"asked to dial {host}:{port} instead of the proxy"
            return await addresses_to_dial(there, self._resolve, may_be_private=True)

        return GuardedTransport(target, address_of_proxy, tls, proxy)


class UpgradedConnection:
    """Bytes both ways, after HTTP. `headers` of the answer have lower-case names."""

    def __init__(self, headers: httpx.Headers, stream: httpcore.AsyncNetworkStream) -> None:
        self.headers: Mapping[str, str] = {name.lower(): value for name, value in headers.items()}
        self._stream = stream

    async def read(self, timeout_s: float) -> bytes | None:
        """What comes next; empty at the end, None if nothing comes in time."""
        try:
            return await self._stream.read(_READ_BYTES, timeout_s)
        except httpcore.ReadTimeout:
            return None

    async def write(self, data: bytes) -> None:
        await self._stream.write(data, _WRITE_S)


class HttpResponse:
    """An answer whose body is still to be read, once.

    `headers` have lower-case names; several of one name are joined by commas. `wire_bytes` is how much of the body,
    before decoding, became what was read so far.
    """

    def __init__(self, target: Target, answer: httpx.Response) -> None:
        self._target = target
        self._answer = answer
        self.status = answer.status_code
        self.url = target.url
        self.headers: Mapping[str, str] = {name.lower(): value for name, value in answer.headers.items()}
        self.wire_bytes = 0

    async def chunks(self) -> AsyncGenerator[bytes]:
        """The decoded body in pieces of at most 64 KB. Raises `ToolError(NETWORK)` if it breaks."""
        with _failures(self._target):
            decoder = BodyDecoder(self.headers.get("content-encoding", ""))
            received = 0
            async for packed in self._answer.aiter_raw():
                received += len(packed)
                for piece in decoder.feed(packed):
                    self.wire_bytes = received - decoder.waiting_bytes
                    if piece:
                        yield piece
                    # A packed piece may hold thousands of these: others want their turn, and time may be over.
                    await anyio.lowlevel.checkpoint()
            self.wire_bytes = received
            decoder.end()

    async def read(self, max_bytes: int) -> tuple[bytes, bool]:
        """The body up to `max_bytes`, and whether there was more."""
        parts: list[bytes] = []
        left = max_bytes
        async with aclosing(self.chunks()) as pieces:
            async for piece in pieces:
                parts.append(piece[:left])
                left -= len(piece)
                if left < 0:
                    return b"".join(parts), True
        return b"".join(parts), False


def _library_url(target: Target) -> httpx.URL:
    """The same place for httpx. Raises `ToolError` if it understands the parts otherwise than we do."""
    url = httpx.URL(scheme=target.scheme, host=target.host, port=target.port, raw_path=target.path.encode("ascii"))
    port = url.port or (443 if url.scheme == "https" else 80)
    if (url.scheme, url.raw_host.decode("ascii"), port) != (target.scheme, target.host, target.port):
        raise ToolError(ErrorCode.ADDRESS, f"{target.shown} can be read in two ways", "Write the URL in a plainer way.")
    return url


def _is_on_this_machine(target: Target) -> bool:
    """Where a proxy would find itself, not us."""
    if ":" in target.host or looks_like_a_number(target.host):
        return why_not_public(target.host) in LEADS_TO_ONESELF
    return host_is_in_domain(target.host, "localhost")


@contextmanager
def _failures(target: Target) -> Generator[None]:
    """Turn what went wrong on the way into a `ToolError`."""
    try:
        yield
    except NotDecodable as problem:
        raise ToolError(
            ErrorCode.NETWORK, f"the answer of {target.shown} cannot be read: {problem}", "Fetch something else."
        ) from None
    except _TRANSPORT_FAILURES as problem:
        verification = _certificate_problem(problem)
        if verification is not None:
            raise ToolError(
                ErrorCode.NETWORK,
                f"the certificate of {target.origin} is not valid: {verification}",
                "Certificates are always checked. The user can trust an authority with the setting web.ca_file.",
            ) from None
        raise ToolError(
            ErrorCode.NETWORK,
            f"{target.shown} cannot be fetched: {_in_words(problem)}",
            "Check the URL, or try again later.",
        ) from None


def _certificate_problem(problem: BaseException | None) -> str | None:
    while problem is not None:
        if isinstance(problem, ssl.SSLCertVerificationError):
            return problem.verify_message
        problem = problem.__cause__ or problem.__context__
    return None


def _in_words(problem: Exception) -> str:
    """What went wrong, without the bytes of the server that the library quotes: they are text of nobody we know."""
    said = str(problem).partition(_QUOTED_BYTES)[0].strip(" :")
    kind = type(problem).__name__
    return f"{kind}: {said[:300]}" if said else kind
