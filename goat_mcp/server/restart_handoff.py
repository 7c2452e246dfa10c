"""One process over stdio after another on the same pipes: what the old one does last, and the new one first."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

import anyio
import mcp_types as types
from mcp.shared._context_streams import ContextSendStream
from mcp.shared.message import SessionMessage

from goat_mcp.core.restart import Restart
from goat_mcp.server.open_requests import OpenRequests
from goat_mcp.server.restart import DRAIN_S, RestartHandoff
from goat_mcp.server.stdio.frame_writer import FrameWriter

GREETING_S = 20.0
_ENDED = types.ErrorData(code=types.CONNECTION_CLOSED, message="the server started itself anew; the call was ended")


@dataclass(frozen=True)
class HandoffOfSessions:
    """`handover` holds what the process before has left, and then what this one leaves. `end_streams` ends what
    would never be answered otherwise."""

    restart: Restart
    handover: RestartHandoff
    end_streams: Callable[[], None]

    async def greet_again(self, inbound: ContextSendStream[SessionMessage | Exception], writer: FrameWriter) -> None:
        """Introduce the client whose handshake the process before has seen."""
        greeting = self.handover.greeting
        if greeting is None:
            return
        request_id = self.handover.resume_id
        answered = writer.keep_back(request_id)
        hello = types.JSONRPCRequest(jsonrpc="2.0", id=request_id, method="initialize", params=dict(greeting))
        await inbound.send(SessionMessage(hello))
        with anyio.move_on_after(GREETING_S):
            await answered.wait()
        ready = types.JSONRPCNotification(jsonrpc="2.0", method="notifications/initialized")
        await inbound.send(SessionMessage(ready))

    async def prepare(
        self, wire_in: int, wire_out: int, unread: bytes, requests: OpenRequests, writer: FrameWriter
    ) -> None:
        """Nothing more is read: answer what was, and keep the pipes."""
        self.end_streams()
        for request_id in await requests.all_closed(DRAIN_S):
            writer.post(types.JSONRPCError(jsonrpc="2.0", id=request_id, error=_ENDED))
        await writer.flush()
        self.handover.unread = unread
        self.handover.wire = (os.dup(wire_in), os.dup(wire_out))
        self.handover.is_complete = True
