"""One `tools/call` on the short way, and its ways to the client; what an earlier call has shown of that client."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

import anyio
import mcp_types as types
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.message import SessionMessage
from mcp.shared.transport_context import TransportContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from goat_mcp.server.client_channel import Context
from goat_mcp.server.requests import CalledTool
from goat_mcp.server.stdio.frame_writer import FrameWriter

CALL = "tools/call"
_RESERVED = "io.modelcontextprotocol/"
_logger = logging.getLogger(__name__)


class KnownClient:
    """What a call on the SDK's way has shown of its client: the connection, and how its requests introduce it."""

    def __init__(self, ctx: Context) -> None:
        # The SDK makes one of these for each request; there is no public way to what it makes it from.
        # The SDK has no public way from a session to its connection.
        self.connection: Connection = ctx.session._connection  # pyright: ignore[reportPrivateUsage]
        self.lifespan: Any = ctx.lifespan_context
        self.envelope = envelope_of((ctx.params or {}).get("_meta") or {})


class FastCall:
    """One call, and its ways to the client: a `DispatchContext` for what runs in it."""

    message_metadata = None

    def __init__(
        self, request_id: types.RequestId, params: Mapping[str, Any], known: KnownClient, writer: FrameWriter
    ) -> None:
        self.request_id = request_id
        self.scope = anyio.CancelScope()
        self.is_cancelled = False
        self.is_closed = False
        self.connection_ended = False
        self._cancel_requested: anyio.Event | None = None
        self._params = params
        self._known = known
        self._writer = writer

    def context(self) -> tuple[Context, CalledTool]:
        """What the adapter is given."""
        params, connection = self._params, self._known.connection
        ctx: Context = ServerRequestContext(
            session=ServerSession(self, connection, request_meta=params.get("_meta")),
            lifespan_context=self._known.lifespan,
            protocol_version=connection.protocol_version,
            method=CALL,
            params=params,
            request_id=self.request_id,
            meta=params.get("_meta"),
        )
        return ctx, _PlainParams(params["name"], params.get("arguments"))

    def cancel(self) -> None:
        """The client wants no answer any more."""
        self.is_cancelled = True
        if self._cancel_requested is not None:
            self._cancel_requested.set()
        self.scope.cancel()

    @property
    def cancel_requested(self) -> anyio.Event:
        # Made when somebody looks at it, which we do not.
        if self._cancel_requested is None:
            self._cancel_requested = anyio.Event()
        return self._cancel_requested

    @property
    def transport(self) -> TransportContext:
        return TransportContext(kind="jsonrpc", can_send_request=self.can_send_request)

    @property
    def can_send_request(self) -> bool:
        return not self.is_closed and self._known.connection.protocol_version not in MODERN_PROTOCOL_VERSIONS

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        if not self.can_send_request:
            raise NoBackChannelError(method)
        return await self._known.connection.outbound.send_raw_request(method, params, opts)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        if self.is_closed:
            return
        about = {} if params is None else {"params": dict(params)}
        try:
            await self._writer.send(SessionMessage(types.JSONRPCNotification(jsonrpc="2.0", method=method, **about)))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            _logger.debug("%s was dropped: the client is gone", method)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        meta: Mapping[str, Any] = self._params.get("_meta") or {}
        if (token := meta.get("progressToken")) is not None:
            told: dict[str, Any] = {"progressToken": token, "progress": progress, "total": total, "message": message}
            await self.notify("notifications/progress", {key: one for key, one in told.items() if one is not None})


class _PlainParams(NamedTuple):
    """The SDK's model of a call takes longer to make than all else here."""

    name: str
    arguments: dict[str, Any] | None
    input_responses: None = None
    request_state: None = None


def envelope_of(meta: Mapping[str, Any]) -> dict[str, Any]:
    """What of a `_meta` the protocol reads: the revision, the client and what it can do, the log level it wants."""
    return {key: value for key, value in meta.items() if key.startswith(_RESERVED)}
