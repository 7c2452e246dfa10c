"""HTTP requests of this server: `HttpClient` and its responses. The library behind it loads with the first request."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

import anyio
import anyio.to_thread

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.web.options import HttpOptions

if TYPE_CHECKING:
    from goat_mcp.web.http.exchange import Exchanges, HttpResponse
    from goat_mcp.web.http.resolver import Resolve
    from goat_mcp.web.http.websocket import WebSocket


def http_status_text(status: int) -> str:
    """E.g. `HTTP 404 Not Found`; of one that has no name the number alone."""
    try:
        return f"HTTP {status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"HTTP {status}"


class WholeResponse(NamedTuple):
    """`body` is decoded and holds at most the bytes that were asked for; `truncated` tells that there was more.

    `headers` have lower-case names; several of one name are joined by commas. `wire_bytes` is what came before
    decoding.
    """

    status: int
    url: str
    headers: Mapping[str, str]
    body: bytes
    truncated: bool
    wire_bytes: int = 0


TIMEOUT_S = 20.0
MAX_BYTES = 5_000_000
NO_HEADERS: Mapping[str, str] = {}
_OVER_HTTP = {"wss": "https", "ws": "http"}


class HttpClient:
    """Requests over https to public addresses, and to whatever a call's `allow_hosts` names. One per gateway.

    No redirect is followed, nothing is remembered from one request to the next (no cookies, no open connections), and
    nothing comes from the environment. Without a proxy every address is checked here and the checked one is dialled;
    with one, the proxy resolves names and only addresses written out in a URL are checked here. `resolve` is the
    system's resolver unless another is given.
    """

    def __init__(self, options: HttpOptions, resolve: Resolve | None = None) -> None:
        self._options = options
        self._resolve = resolve
        self._loading = threading.Lock()
        self._exchanges: Exchanges | None = None

    @property
    def proxy(self) -> str | None:
        """Host and port of the proxy that checks addresses in our place, if the user named one."""
        from goat_mcp.web.http.target import parse_proxy

        url = self._options.proxy.get_secret_value()
        return parse_proxy(url).target.authority if url else None

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] = NO_HEADERS,
        content: bytes | None = None,
        allow_hosts: Collection[str] = (),
        timeout_s: float = TIMEOUT_S,
    ) -> AsyncGenerator[HttpResponse]:
        """Send a request; the block reads its answer. `timeout_s` covers all of it, from DNS to the block's end.

        `allow_hosts` are `host` or `host:port` entries that may have private addresses and be asked over plain http;
        every other host is asked over https alone, and who has an http URL of one upgrades it first
        (`Target.upgraded`), also if a redirect leads there. Headers of the connection itself (Host,
        Content-Length...) are ours.

        Raises `ToolError`: ADDRESS for a URL or address that is refused, INPUT for a header, NETWORK for what failed
        on the way.
        """
        from goat_mcp.web.http.target import parse_target

        target = parse_target(url)
        with anyio.move_on_after(timeout_s) as limit:
            exchanges = await self._loaded()
            async with exchanges.open(
                method, target, headers, content, is_allowed=target.is_among(allow_hosts)
            ) as response:
                yield response
        if limit.cancelled_caught:
            raise ToolError(
                ErrorCode.NETWORK,
                f"{target.shown} did not answer in full within {timeout_s:.3g} s",
                "Try again later.",
                facts={"timed_out": True},
            )

    async def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] = NO_HEADERS,
        content: bytes | None = None,
        allow_hosts: Collection[str] = (),
        timeout_s: float = TIMEOUT_S,
        max_bytes: int = MAX_BYTES,
    ) -> WholeResponse:
        """As `stream`, with the body read up to `max_bytes`. What is longer is cut, and `truncated` says so."""
        async with self.stream(
            method, url, headers=headers, content=content, allow_hosts=allow_hosts, timeout_s=timeout_s
        ) as response:
            body, truncated = await response.read(max_bytes)
            return WholeResponse(response.status, response.url, response.headers, body, truncated, response.wire_bytes)

    @asynccontextmanager
    async def websocket(
        self, url: str, *, allow_hosts: Collection[str] = (), timeout_s: float = TIMEOUT_S
    ) -> AsyncGenerator[WebSocket]:
        """A WebSocket to a wss URL (ws for `allow_hosts`), under the rules of `stream`. `timeout_s` is for its opening.

        Raises `ToolError`, also `NOT_CONFIGURED` without the extra goat-mcp[slack].
        """
        from goat_mcp.web.http.target import parse_target
        from goat_mcp.web.http.websocket import opened

        scheme, colon, rest = url.partition(":")
        target = parse_target(f"{_OVER_HTTP.get(scheme.lower(), scheme)}{colon}{rest}")
        exchanges = await self._loaded()
        async with opened(exchanges, target, is_allowed=target.is_among(allow_hosts), timeout_s=timeout_s) as socket:
            yield socket

    async def _loaded(self) -> Exchanges:
        if self._exchanges is None:
            # Importing httpx and reading certificates would hold up every other call.
            return await anyio.to_thread.run_sync(self._load)
        return self._exchanges

    def _load(self) -> Exchanges:
        from goat_mcp.web.http.exchange import Exchanges
        from goat_mcp.web.http.resolver import SystemResolver

        with self._loading:  # the first calls may come together
            if self._exchanges is None:
                self._exchanges = Exchanges(self._options, self._resolve or SystemResolver())
            return self._exchanges
