"""A streamable-HTTP upstream: the SDK's transport over a client whose failures stay with the request they hit.

Without that, one refused connection ends the SDK's task group and every other call with it. Here each failure becomes a
JSON-RPC error that carries a `Fault`. Requests carry the token of the upstream's login and no other: what a client
authorised itself with to us never gets here (AUT-1). A flood of notices is dropped before it is parsed (R-UP-3).
Contract: LIF-5, LIF-6, R-UP-3.
"""

from __future__ import annotations

import logging
import os
import re
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.to_thread
import httpx2
from anyio.streams.memory import MemoryObjectSendStream
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._stream_protocols import ReadStream, WriteStream  # the SDK's transport contract
from mcp.shared.message import SessionMessage
from pydantic_core import from_json

from goat_mcp.core.token_bucket import TokenBucket
from goat_mcp.upstreams.config.entry import HttpEndpoint
from goat_mcp.upstreams.faults import Fault, FaultKind, FaultMarks, StartFailure
from goat_mcp.upstreams.oauth.login_contract import AuthServerDown, LoginNeeded
from goat_mcp.upstreams.oauth.logins import LazyLogin
from goat_mcp.upstreams.status import ReasonCode
from goat_mcp.upstreams.transports.direct_posts import SESSION_HEADER, DirectPosts
from goat_mcp.upstreams.transports.http_connections import HttpConnections
from goat_mcp.upstreams.transports.notifications import NotificationLimits

_EVENT = re.compile(rb"(?>(?:event: ?message\r?\n|id: ?[^\r\n]*\r?\n)*)data: ?(\{[^\r\n]*\})\r?\n\r?\n")
_END = re.compile(rb"\r?\n\r?\n")
_BARE_RETURN = re.compile(rb"\r[^\n]")
_MAX_HELD_BYTES = 64 * 1024
"""Of an event that is not whole yet; a longer one passes."""
_BYTES_PER_S = 16 * 1024 * 1024
"""Of notices that are dropped: about 100,000 small ones."""


class UnfloodedEvents(httpx2.AsyncByteStream):
    """`limits` are those of the connection, which may have several streams."""

    def __init__(self, body: httpx2.AsyncByteStream, limits: NotificationLimits) -> None:
        self._body = body
        self._limits = limits
        self._dropped = TokenBucket(_BYTES_PER_S, _BYTES_PER_S)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        held = b""
        passes_all = False  # it has line ends that nobody writes: all of it passes
        is_inside = False  # of an event whose beginning has passed
        async for chunk in self._body:
            held += chunk
            if passes_all or (passes_all := b"\r" in held and _BARE_RETURN.search(held) is not None):
                yield held
                held = b""
                continue
            end = max(held.rfind(b"\n\n") + 2, held.rfind(b"\n\r\n") + 3)
            if end < 3:
                if is_inside or len(held) > _MAX_HELD_BYTES:
                    is_inside = True
                    # What may be the beginning of its end stays.
                    yield held[:-3]
                    held = held[-3:]
                continue
            whole, held = held[:end], held[end:]
            begin = 0
            if is_inside and (found := _END.search(whole)) is not None:
                begin, is_inside = found.end(), False
            passed = self._passed(whole, begin)
            if len(passed) < len(whole) and (wait_s := self._dropped.spend(len(whole) - len(passed))):
                await anyio.sleep(wait_s)
            if passed:
                yield passed
        if held:
            yield held

    def _passed(self, events: bytes, begin: int) -> bytes:
        """What is left of whole events. What comes before `begin` is the rest of one that has passed."""
        parts = [events[:begin]]
        at = begin
        while at < len(events):
            found = _EVENT.match(events, at)
            if found is not None:
                end = found.end()
                is_passed = self._limits.admits(found[1])
            elif events[at] in b"\r\n":
                end, is_passed = at + 1, True
            else:
                end = ended.end() if (ended := _END.search(events, at)) is not None else len(events)
                is_passed = True
            if is_passed:
                parts.append(events[at:end])
            at = end
        return b"".join(parts)

    async def aclose(self) -> None:
        await self._body.aclose()


MAX_BODY_BYTES = 16 * 1024 * 1024
_CONNECT_TIMEOUT_S = 10.0
_READ_TIMEOUT_S = 3600.0
"""Between two bytes: calls have deadlines of their own, and a change stream is silent for hours."""
_GOODBYE_TIMEOUT_S = 2.0
_AUTHORITIES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""The variables by which users name whom they trust, the one that counts first."""
_NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.UnsupportedProtocol, httpx2.PoolTimeout)


@dataclass
class HttpTransport:
    """What is known of the connection beside its messages."""

    marks: FaultMarks
    limits: NotificationLimits
    direct: DirectPosts

    def last_words(self) -> str:
        return "the connection closed"

    def junk(self) -> tuple[int, int]:
        return 0, 0

    def stderr_text(self) -> str:
        return ""


class _BoundedBody(httpx2.AsyncByteStream):
    """A response body that ends at a size, and whose breaks are of the kind the SDK turns into an error answer."""

    def __init__(self, body: httpx2.AsyncByteStream, max_bytes: int | None) -> None:
        self._body = body
        self._max_bytes = max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        taken = 0
        try:
            async for chunk in self._body:
                taken += len(chunk)
                if self._max_bytes is not None and taken > self._max_bytes:
                    raise httpx2.StreamError(f"the answer is larger than {self._max_bytes} bytes")
                yield chunk
        except httpx2.TransportError as broken:
            raise httpx2.StreamError(f"the connection broke: {type(broken).__name__}") from broken

    async def aclose(self) -> None:
        await self._body.aclose()


class _RequestScoped(httpx2.AsyncBaseTransport):
    """Answers for an upstream that cannot: refused, broken, not authorised, session gone."""

    session_id: str | None = None
    """That of the handshake era, once there is one."""

    def __init__(
        self, marks: FaultMarks, limits: NotificationLimits, login: LazyLogin | None, tls: ssl.SSLContext
    ) -> None:
        self._marks = marks
        self._limits = limits
        self._login = login
        self._inner = HttpConnections(tls)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "DELETE":
            # The farewell of a session: a hung upstream must not hold up our own end.
            with anyio.move_on_after(_GOODBYE_TIMEOUT_S):
                return await self._send(request)
            return httpx2.Response(504, request=request)
        return await self._send(request)

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        if (session_id := request.headers.get(SESSION_HEADER)) is not None:
            self.session_id = session_id
        try:
            if self._login is None:
                response = await self._inner.handle_async_request(request)
            else:
                response = await send_authorised(self._login, request, self._inner.handle_async_request)
        except LoginNeeded as needed:
            return self._fault(request, 401, FaultKind.AUTH_REQUIRED, needed.why, needed.scopes)
        except AuthServerDown as down:
            return self._fault(request, 503, FaultKind.UNREACHABLE, f"its authorization server: {down}")
        except _NEVER_SENT as problem:
            return self._fault(request, 503, FaultKind.UNREACHABLE, f"{type(problem).__name__}: {problem}")
        except httpx2.TransportError as problem:
            return self._fault(request, 503, FaultKind.LOST, f"{type(problem).__name__}: {problem}")
        if request.method == "POST" and response.status_code >= 400:
            return await self._refusal(request, response)
        if packed := _packed(response):
            await response.aclose()
            wrong = f"it answered packed as {packed}, although told not to"
            return self._fault(request, 502, FaultKind.MALFORMED, wrong)
        is_stream = response.headers.get("content-type", "").lower().startswith("text/event-stream")
        if request.method != "POST":
            if is_stream:
                response.stream = UnfloodedEvents(_async_body(response), self._limits)
            return response
        if (wrong := _no_answer(response)) is not None:
            await response.aclose()
            return self._fault(request, 502, *wrong)
        body = _BoundedBody(_async_body(response), None if is_stream else MAX_BODY_BYTES)
        response.stream = UnfloodedEvents(body, self._limits) if is_stream else body
        return response

    async def _refusal(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        """An error status: the upstream's own JSON-RPC error passes, anything else gets a fault of its kind."""
        status = response.status_code
        response.stream = _BoundedBody(_async_body(response), MAX_BODY_BYTES)
        body = b""
        try:
            if not _packed(response):
                body = await response.aread()
        except httpx2.StreamError:
            pass
        finally:
            await response.aclose()
        error = _json_rpc_error(body)
        if SESSION_HEADER in request.headers and (status == 404 or _names_lost_session(error)):
            return self._fault(request, status, FaultKind.SESSION_LOST, "the upstream no longer knows our session")
        if error is not None and status != 401:
            return httpx2.Response(status, request=request, content=body, headers={"content-type": "application/json"})
        if status in (401, 403):
            return self._fault(request, status, FaultKind.AUTH_REQUIRED, f"HTTP {status}")
        if status in (408, 429) or status >= 500:
            return self._fault(request, status, FaultKind.HTTP_STATUS, f"HTTP {status}")
        return httpx2.Response(status, request=request, content=body)

    def _fault(
        self, request: httpx2.Request, status: int, kind: FaultKind, detail: str, wanted_scopes: str | None = None
    ) -> httpx2.Response:
        fault = Fault(kind, detail, wanted_scopes)
        error = {"code": -32000, "message": detail, "data": self._marks.mark(fault)}
        return httpx2.Response(status, request=request, json={"jsonrpc": "2.0", "id": None, "error": error})

    async def aclose(self) -> None:
        await self._inner.aclose()


def _async_body(response: httpx2.Response) -> httpx2.AsyncByteStream:
    body = response.stream
    assert isinstance(body, httpx2.AsyncByteStream)
    return body


def _packed(response: httpx2.Response) -> str:
    """How the body is compressed, which is not unpacked: a little of it may be any amount. Empty if it is not."""
    packed = response.headers.get("content-encoding", "").strip().lower()
    return "" if packed == "identity" else packed[:40]


def _no_answer(response: httpx2.Response) -> tuple[FaultKind, str] | None:
    """Why a response below 400 cannot hold an MCP message; None where it can."""
    status = response.status_code
    if 300 <= status < 400:
        return FaultKind.HTTP_STATUS, f"HTTP {status}: it redirects, which is not followed"
    if status == 202:
        return None  # a notification was taken
    if status != 200:
        return FaultKind.MALFORMED, f"it answered with HTTP {status}, which holds no message"
    kind = response.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind not in ("application/json", "text/event-stream"):
        return FaultKind.MALFORMED, f"it answered with {kind or 'no content type'} instead of JSON"
    length = response.headers.get("content-length", "")
    if length == "0":
        return FaultKind.MALFORMED, "it answered with nothing"
    if kind == "application/json" and length.isdecimal() and int(length[:20]) > MAX_BODY_BYTES:
        # Not a byte of it is read.
        return FaultKind.MALFORMED, f"the answer is larger than {MAX_BODY_BYTES} bytes"
    return None


def _json_rpc_error(body: bytes) -> dict[str, Any] | None:
    try:
        answer: Any = from_json(body)
    except ValueError:
        return None
    match answer:
        case {"jsonrpc": "2.0", "error": {"code": int(), "message": str()}}:
            return answer["error"]
        case _:
            return None


def _names_lost_session(error: dict[str, Any] | None) -> bool:
    """Servers answer a session they do not know with any status; only the text tells."""
    return error is not None and "session" in str(error["message"]).lower()


async def _tls_for(url: str) -> ssl.SSLContext:
    """Reading all certificates takes longer than a call of somebody else should wait (ISO-1), and is of no use where
    nothing is encrypted: what is made for such an address trusts nobody. Raises `StartFailure`."""
    if httpx2.URL(url).scheme == "http":
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        return await anyio.to_thread.run_sync(httpx2.create_ssl_context)
    except OSError as problem:  # of which `ssl.SSLError` is one
        named = next((f"{name}={os.environ[name]}: " for name in _AUTHORITIES if os.environ.get(name)), "")
        why = f"no certificate can be checked: {named}{problem.strerror or problem}"
        raise StartFailure(ReasonCode.UNREACHABLE, why) from None


@asynccontextmanager
async def http_transport(
    endpoint: HttpEndpoint,
    login: LazyLogin | None = None,
) -> AsyncGenerator[tuple[HttpTransport, ReadStream[SessionMessage | Exception], WriteStream[SessionMessage]]]:
    """Yield the streams. Nothing is sent before the first message."""
    # It writes a traceback with what came for every answer it cannot read, as often as an upstream sends one.
    logging.getLogger("mcp.client.streamable_http").setLevel(logging.CRITICAL + 1)
    marks, limits = FaultMarks(), NotificationLimits()
    transport = _RequestScoped(marks, limits, login, await _tls_for(endpoint.url))
    client = httpx2.AsyncClient(
        transport=transport,
        # What is packed has no size we could hold it to.
        headers={**endpoint.headers, "accept-encoding": "identity"},
        timeout=httpx2.Timeout(_CONNECT_TIMEOUT_S, read=_READ_TIMEOUT_S),
        trust_env=False,
    )
    others, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    async with (
        client,
        streamable_http_client(endpoint.url, http_client=client, max_sse_event_size=MAX_BODY_BYTES) as (read, write),
        anyio.create_task_group() as group,
    ):
        direct = DirectPosts(client, endpoint.url, transport, others, group, max_event_bytes=MAX_BODY_BYTES)
        group.start_soon(_forward, read, direct, others)
        try:
            yield HttpTransport(marks, limits, direct), messages, write
        finally:
            group.cancel_scope.cancel()


async def _forward(
    read: ReadStream[SessionMessage | Exception],
    direct: DirectPosts,
    others: MemoryObjectSendStream[SessionMessage | Exception],
) -> None:
    """What comes by the SDK's own requests, to whoever waits for it."""
    with others, suppress(anyio.BrokenResourceError):
        async for item in read:
            if not (isinstance(item, SessionMessage) and direct.take(item.message)):
                await others.send(item)


_SCOPE = re.compile(r'(?:^|[\s,])scope="([\x20\x21\x23-\x5b\x5d-\x7e]{1,1000})"')
_INSUFFICIENT = re.compile(r'(?:^|[\s,])error="?insufficient_scope\b')


async def send_authorised(
    login: LazyLogin, request: httpx2.Request, send: Callable[[httpx2.Request], Awaitable[httpx2.Response]]
) -> httpx2.Response:
    """The answer. Raises `LoginNeeded` and `AuthServerDown`: then the request had no effect."""
    token = await login.token()
    response = await send(_bearing(request, token))
    if response.status_code == 401:
        challenge = await _challenge_of(response)
        token = await login.after_refusal(token, challenge)
        response = await send(_bearing(request, token))
        if response.status_code == 401:
            await response.aclose()
            raise LoginNeeded("it refuses the token of its login")
    if response.status_code == 403 and _INSUFFICIENT.search(response.headers.get("www-authenticate", "")):
        challenge = await _challenge_of(response)
        scopes = _SCOPE.search(challenge)
        token = await login.with_more_scopes(token, scopes[1] if scopes else "", challenge)
        response = await send(_bearing(request, token))
    return response


def _bearing(request: httpx2.Request, token: str | None) -> httpx2.Request:
    if token is not None:
        request.headers["authorization"] = f"Bearer {token}"
    return request


async def _challenge_of(response: httpx2.Response) -> str:
    await response.aclose()
    return response.headers.get("www-authenticate", "")
