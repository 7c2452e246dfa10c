"""The calls of one session of the handshake era on the fast path, and the requests that they put to its client."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
import mcp_types as types
from mcp.server.connection import Connection
from mcp.shared.dispatcher import CallOptions, as_request_id, coerce_request_id
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from goat_mcp.server.client_channel import Context
from goat_mcp.server.http.fast_response import FastResponse
from goat_mcp.server.http.stream_events import SessionEvents
from goat_mcp.server.plain_calls import FastCall, KnownClient, has_plain_params

SESSION = "goat_mcp.session"
"""The key of a request's ASGI scope that holds the `CallsOfSession` of its session, which is its principal's."""

Headers = dict[bytes, bytes]


class SessionCall(FastCall):
    """A call of the handshake era, which may put requests to its client on its own stream."""

    def __init__(
        self,
        message: Mapping[str, Any],
        known: KnownClient,
        response: FastResponse,
        questions: dict[str, asyncio.Future[dict[str, Any] | types.ErrorData]],
    ) -> None:
        super().__init__(message["id"], message["params"], known, response)
        self._response = response
        self._questions = questions

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        if not self.can_send_request:
            raise NoBackChannelError(method)
        request_id = f"goat-{secrets.token_hex(8)}"
        about: dict[str, Any] = {} if params is None else {"params": dict(params)}
        question = types.JSONRPCRequest(jsonrpc="2.0", id=request_id, method=method, **about)
        answer = self._questions[request_id] = asyncio.get_running_loop().create_future()
        try:
            with anyio.fail_after((opts or {}).get("timeout")):
                await self._response.send(SessionMessage(question))
                outcome = await answer
        except TimeoutError:
            await self._withdraw(request_id, "timed out")
            raise MCPError(types.REQUEST_TIMEOUT, f"Request {method!r} timed out") from None
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self._withdraw(request_id, "caller cancelled")
            raise
        finally:
            del self._questions[request_id]
        if isinstance(outcome, types.ErrorData):
            raise MCPError(outcome.code, outcome.message, outcome.data)
        return outcome

    async def _withdraw(self, request_id: str, reason: str) -> None:
        await self.notify("notifications/cancelled", {"requestId": request_id, "reason": reason})


@dataclass(eq=False)
class CallsOfSession:
    """What the fast path knows of one session of the handshake era. Only its principal gets to it."""

    events: SessionEvents | None = None
    known: KnownClient | None = None
    headers: Headers | None = None
    newest: Headers | None = None
    """Of the last request that went the SDK's way, if it was a call."""
    connection: Connection | None = None
    running: dict[types.RequestId, SessionCall] = field(default_factory=dict[types.RequestId, SessionCall])
    questions: dict[str, asyncio.Future[dict[str, Any] | types.ErrorData]] = field(
        default_factory=dict[str, "asyncio.Future[dict[str, Any] | types.ErrorData]"]
    )

    def learn(self, ctx: Context, headers: Headers) -> None:
        """A call of these headers has come through on the SDK's way."""
        # Messages stay in order: whatever came before the newest one has begun, too.
        if self.newest is headers:
            self.known, self.headers = KnownClient(ctx), headers
            if self.connection is not self.known.connection:
                self.connection = self.known.connection
                self.connection.exit_stack.callback(self._end)

    def knows(self, message: dict[str, Any], headers: Headers) -> bool:
        known = self.known
        return (
            known is not None
            and self.headers == headers
            and has_plain_params(message["params"], known.envelope)
            and coerce_request_id(message["id"]) not in self.running
        )

    def ended(self, call: SessionCall) -> None:
        """Its client has the answer, or will have none."""
        if self.running.get(key := coerce_request_id(call.request_id)) is call:
            del self.running[key]

    def takes(self, message: Mapping[str, Any]) -> bool:
        """Whether a message that is no call was about a call of ours, and is done with."""
        match message:
            case {"method": "notifications/cancelled", "params": {"requestId": str() | int() as about}}:
                request_id = as_request_id(about)
                call = self.running.get(coerce_request_id(request_id)) if request_id is not None else None
                if call is not None:
                    call.cancel()
                return call is not None
            case {"method": _}:
                # It may change what the next call meets (a log level, a new greeting), which therefore comes after it.
                self.known = self.newest = None
                return False
            case {"id": str() as about} if (question := self.questions.get(about)) is not None:
                if (outcome := _outcome(message)) is None:
                    return False
                if not question.done():
                    question.set_result(outcome)
                return True
            case _:
                return False

    def _end(self) -> None:
        """The session has ended."""
        self.known = self.newest = None
        for call in self.running.values():
            call.end_connection()


def _outcome(message: Mapping[str, Any]) -> dict[str, Any] | types.ErrorData | None:
    """What a client answered to a request; None for what is no answer."""
    try:
        answer = types.jsonrpc_message_adapter.validate_python(message, by_name=False)
    except ValidationError:
        return None
    if isinstance(answer, types.JSONRPCResponse):
        return answer.result
    return answer.error if isinstance(answer, types.JSONRPCError) else None
