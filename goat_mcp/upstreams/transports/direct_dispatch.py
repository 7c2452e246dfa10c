"""Plain calls of a stdio upstream on the shortest way: into the pipe, and from the pipe's callback to who waits.

Such a call costs a quarter of one through the SDK's dispatcher (which adds two streams, a span and three turns of
the event loop). Log messages go the short way too, so that the result of a call never overtakes them. All else stays
with the dispatcher: calls that report progress, lists, other notices, what upstreams ask.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import anyio
import anyio.lowlevel
from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCResponse

Answer = JSONRPCResponse | JSONRPCError
LOG_MESSAGE = "notifications/message"


def _nobody(method: str, params: Mapping[str, Any] | None) -> None:
    """Before anybody is there to be told."""


class Writer(Protocol):
    async def send_request(self, request_id: int, method: str, params: dict[str, Any]) -> None: ...

    def post(self, message: JSONRPCMessage) -> None:
        """Write without waiting, if anybody still reads."""
        ...


@dataclass
class DirectDispatch:
    """The calls of one connection that wait for their answer. `on_log` takes its log messages, and must not block."""

    on_log: Callable[[str, Mapping[str, Any] | None], None] = _nobody
    _waiting: dict[int, asyncio.Future[Answer | None]] = field(
        default_factory=dict[int, "asyncio.Future[Answer | None]"]
    )
    _is_over: bool = False

    async def ask(self, writer: Writer, request_id: int, method: str, params: dict[str, Any]) -> Answer | None:
        """The answer; None if the connection ended without one. Cancelled, it cancels the request."""
        if self._is_over:
            return None
        # A request that was cancelled before it began is not sent at all.
        await anyio.lowlevel.checkpoint_if_cancelled()
        answer: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = answer
        try:
            await writer.send_request(request_id, method, params)
            return await answer
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return None
        except asyncio.CancelledError:
            cancelled = {"requestId": request_id, "reason": "the client cancelled it or its time is over"}
            writer.post(JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled", params=cancelled))
            raise
        finally:
            self._waiting.pop(request_id, None)

    def take(self, message: JSONRPCMessage) -> bool:
        """Hand an answer to its call. False for any other message, late and repeated answers included."""
        if not self._waiting or not isinstance(message, JSONRPCResponse | JSONRPCError):
            return False
        answered = message.id
        if isinstance(answered, str):
            # Some servers answer 7 with "7".
            answered = int(answered) if answered.isdecimal() and len(answered) < 16 else None
        call = self._waiting.pop(answered, None) if answered is not None else None
        if call is None:
            return False
        if not call.done():
            call.set_result(message)
        return True

    def take_log(self, message: JSONRPCMessage) -> bool:
        """Hand a log message on, before the answer that comes after it. False for any other message."""
        if not isinstance(message, JSONRPCNotification) or message.method != LOG_MESSAGE:
            return False
        self.on_log(message.method, message.params)
        return True

    def end(self) -> None:
        """No more answers will come."""
        self._is_over = True
        for call in self._waiting.values():
            if not call.done():
                call.set_result(None)
