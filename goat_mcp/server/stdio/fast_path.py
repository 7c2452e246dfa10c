"""Plain `tools/call` requests over stdio on a short way: from the frame to the adapter, from it to the pipe.

Design 0019. The SDK's way costs three streams, a span, a chain of middleware and three models for each call. The first
call of a connection goes the SDK's way, later ones that look like it take the fast path (`plain_calls.py`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from functools import partial
from typing import Any, cast

import anyio
import mcp_types as types
from mcp.shared.dispatcher import as_request_id, coerce_request_id
from mcp.shared.message import SessionMessage

from goat_mcp.server.cancellations import CANCELLED
from goat_mcp.server.client_channel import Context
from goat_mcp.server.plain_calls import CALL, FastCall, KnownClient, PlainCalls, has_plain_params, is_plain_call
from goat_mcp.server.stdio.frame_writer import FrameWriter

_CLOSED = types.ErrorData(code=types.CONNECTION_CLOSED, message="Connection closed")
_logger = logging.getLogger(__name__)


class FastPath:
    """The fast path into one server, over one connection."""

    def __init__(self, calls: PlainCalls) -> None:
        self._calls = calls
        self._known: KnownClient | None = None
        self._newest: types.RequestId | None = None
        """The last message that went the SDK's way, where it was a call."""
        self._running: dict[types.RequestId, FastCall] = {}
        self._tasks: dict[FastCall, asyncio.Task[None]] = {}
        calls.server.add_request_handler(CALL, types.CallToolRequestParams, self._learn)

    async def _learn(self, ctx: Context, params: types.CallToolRequestParams) -> Any:
        """A call has come through on the SDK's way."""
        if ctx.request_id == self._newest and not self._calls.are_traced:
            # Messages stay in order: whatever came before this one has begun, too.
            self._known = KnownClient(ctx)
        return await self._calls.call_tool(ctx, params)

    @property
    def is_open(self) -> bool:
        """Whether any message may take it at the moment."""
        return self._known is not None

    def takes(self, message: object) -> bool:
        """Whether this message, which is sound JSON, may take the fast path."""
        if self._known is None or not isinstance(message, dict):
            return False
        frame = cast("dict[str, Any]", message)
        return is_plain_call(frame) and has_plain_params(frame["params"], self._known.envelope)

    def start(self, message: Mapping[str, Any], writer: FrameWriter) -> None:
        """Begin a call that `takes` has let pass; its answer goes to the writer."""
        assert self._known is not None
        call = FastCall(message["id"], message["params"], self._known, writer)
        call.will_do_afterwards()
        call.answer_now = partial(self._answer_now, call, writer)
        self._running[coerce_request_id(call.request_id)] = call
        # Beginning a task in a group costs as much as a stage of the pipeline. `end` does what a group is for.
        self._tasks[call] = asyncio.get_running_loop().create_task(self._serve(call, writer))

    async def end(self) -> None:
        """The connection ends: cancel what runs, and wait until it has ended."""
        for call, task in self._tasks.items():
            if call.is_closed:
                task.cancel()  # it has its answer, and waits for a client that does not read
            call.end_connection()
        while self._tasks:
            await asyncio.wait(self._tasks.values())

    def passes_on(self, message: types.JSONRPCMessage) -> bool:
        """Note a message for the SDK. False for one that was about a call of ours, and is done with."""
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            return True
        if isinstance(message, types.JSONRPCNotification) and message.method == CANCELLED:
            self._calls.cancellations.note("", message.params)
            request_id = as_request_id((message.params or {}).get("requestId"))
            call = self._running.get(coerce_request_id(request_id)) if request_id is not None else None
            if call is not None:
                call.cancel()
            return call is None
        # It may change what the next call meets (a log level, a new greeting), which therefore comes after it.
        self._known = None
        self._newest = message.id if isinstance(message, types.JSONRPCRequest) and message.method == CALL else None
        return True

    async def _serve(self, call: FastCall, writer: FrameWriter) -> None:
        answer: dict[str, Any] | types.ErrorData | None = None
        try:
            try:
                with call.scope:
                    answer = await self._calls.answer(*call.context())
            finally:
                call.close()
                if self._running.get(key := coerce_request_id(call.request_id)) is call:
                    del self._running[key]
            if call.is_cancelled or call.is_left:
                return  # whoever cancels a call gets no answer to it
            if not call.connection_ended:
                await self._send(call, answer, writer)
            elif answer is None:
                writer.post(_error(call.request_id, _CLOSED))
            else:
                with anyio.move_on_after(0):
                    # Written, but nobody waits for the client to read it.
                    await self._send(call, answer, writer)
        except Exception:
            _logger.exception("a call failed on its way out")
        finally:
            try:
                await call.do_afterwards()
            finally:
                # Here, not in a callback of the task: that would cost another turn of the event loop.
                del self._tasks[call]

    async def _answer_now(self, call: FastCall, writer: FrameWriter, answer: dict[str, Any]) -> None:
        if self._running.get(key := coerce_request_id(call.request_id)) is call:
            del self._running[key]
        await self._send(call, self._calls.wire(answer, call.protocol_version), writer)

    async def _send(self, call: FastCall, answer: dict[str, Any] | types.ErrorData | None, writer: FrameWriter) -> None:
        if answer is None:
            return
        try:
            if isinstance(answer, dict):
                writer.post_result(call.request_id, answer)
                await call.do_afterwards()
                await writer.room()
            else:
                await writer.send(SessionMessage(_error(call.request_id, answer)))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            _logger.debug("the answer to %r was dropped: the client is gone", call.request_id)


def _error(request_id: types.RequestId, error: types.ErrorData) -> types.JSONRPCError:
    return types.JSONRPCError(jsonrpc="2.0", id=request_id, error=error)
