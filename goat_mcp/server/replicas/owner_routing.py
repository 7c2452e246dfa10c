"""Which replica answers a request: the one that has its session, or that has suspended its call; else this one.

A session id of the handshake era ends with what the SDK made, behind the name of its replica: `web-1-8765.4f…`. So a
balancer may route by it, and if it does not, the replica that got the request passes it on. The sealed state of a
suspended call (2026-07-28) names its replica, too, and so does the id of a task: if that replica is gone, any other
says what is known of the task. A replica that leaves passes on what is new.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from goat_mcp.core.errors import ToolError
from goat_mcp.server.http.body import replayed
from goat_mcp.server.http.fast_path import MESSAGE
from goat_mcp.server.http.guard import Refusal, principal_of
from goat_mcp.server.http.sessions import has_sessions
from goat_mcp.server.replicas.gate import HOP
from goat_mcp.server.replicas.relay import Relay, session_not_found
from goat_mcp.server.replicas.requests_in_progress import RequestsInProgress
from goat_mcp.server.suspended_calls import PARKED_CALL_LOST
from goat_mcp.state.replicas.replica import Replica
from goat_mcp.web.hops.client import ReplicaUnreachable

REPLICA_LOST = "replica_lost"
_SESSION = MCP_SESSION_ID_HEADER.encode()
_TRY_AGAIN = Refusal(503, "the replica of this request cannot be reached now; try again", ((b"retry-after", b"1"),))


@dataclass
class Leaving:
    """How far this replica is on its way out: `has_begun` means that others take what is new, `is_over` that nothing
    begins here any more."""

    has_begun: bool = False
    is_over: bool = False


@dataclass
class OwnerRouting:
    """ASGI middleware, behind the token and the reading of the body, in front of the sessions."""

    app: ASGIApp
    relay: Relay
    replica_of_state: Callable[[str], str]
    """The name in a sealed state; empty if there is none, or it cannot be opened."""
    leaving: Leaving
    in_progress: RequestsInProgress
    needs_token: bool

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or principal_of(scope, needs_token=self.needs_token) is None:
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if has_sessions(headers):
            await self._in_session(headers.get(MCP_SESSION_ID_HEADER, ""), scope, receive, send)
        else:
            await self._without_session(scope, receive, send)

    async def _in_session(self, session_id: str, scope: Scope, receive: Receive, send: Send) -> None:
        name, _, own_id = session_id.rpartition(".")
        own_name = self._own_name()
        if not session_id:
            other, going_on = self._instead(scope), receive
            if other is not None:
                going_on = await self._asked(other, REPLICA_LOST, scope, receive, send)
            if going_on is not None:
                await self._here(scope, going_on, _naming(own_name, send))
        elif name == own_name and self.leaving.is_over:
            await _gone(scope, receive, send)
        elif name == own_name:
            kept = [(key, value) for key, value in scope["headers"] if key != _SESSION]
            scope["headers"] = [*kept, (_SESSION, own_id.encode("latin-1"))]
            await self._here(scope, receive, _naming(own_name, send))
        elif not name or HOP in scope:
            await self.app(scope, receive, send)  # nobody's here
        else:
            try:
                owner = await self.relay.registry.find(name)
            except ToolError:
                await _TRY_AGAIN.answer(send)
                return
            if owner is None or await self._asked(owner, REPLICA_LOST, scope, receive, send) is not None:
                await _gone(scope, receive, send)

    async def _without_session(self, scope: Scope, receive: Receive, send: Send) -> None:
        state = _state_of(scope)
        name = "" if HOP in scope else self.replica_of_state(state) if state else _replica_of_task(scope)
        try:
            other = await self.relay.registry.find(name) if name else self._instead(scope)
        except ToolError:
            await _TRY_AGAIN.answer(send)
            return
        going_on: Receive | None = receive
        if other is not None and other.name != self._own_name():
            reason = PARKED_CALL_LOST if name and state else REPLICA_LOST
            going_on = await self._asked(other, reason, scope, receive, send)
        if going_on is not None:
            await self._here(scope, going_on, send)  # it says what is known of a lost call

    async def _here(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.leaving.is_over:
            await _TRY_AGAIN.answer(send)
            return
        with self.in_progress.one(scope):
            await self.app(scope, receive, send)

    async def _asked(self, other: Replica, reason: str, scope: Scope, receive: Receive, send: Send) -> Receive | None:
        """Have another replica answer. None if the client has its answer; if nobody is there, how to receive the
        request again."""
        body = (await receive()).get("body", b"")  # it has been read whole
        try:
            await self.relay.pass_on(scope, receive, send, other, body, reason)
        except ReplicaUnreachable as problem:
            if problem.is_refused:
                return replayed(body, receive)
            await _TRY_AGAIN.answer(send)
        return None

    def _instead(self, scope: Scope) -> Replica | None:
        """Who takes what is new, if this one leaves."""
        if HOP in scope or not self.leaving.has_begun:
            return None
        own_name = self._own_name()
        others = [one for one in self.relay.registry.live if one.name != own_name and not one.is_leaving]
        return random.choice(others) if others else None

    def _own_name(self) -> str:
        return self.relay.registry.me.name


def _state_of(scope: Scope) -> str:
    return _text_param(scope, "requestState")


def _replica_of_task(scope: Scope) -> str:
    """Of a request about a task of ours; else empty."""
    message = scope.get(MESSAGE)
    method: Any = cast("dict[str, Any]", message).get("method") if isinstance(message, dict) else None
    if not isinstance(method, str) or not method.startswith("tasks/"):
        return ""
    from goat_mcp.server.tasks.task_ids import replica_of_task  # loads what tasks are

    return replica_of_task(_text_param(scope, "taskId"))


def _text_param(scope: Scope, name: str) -> str:
    message = scope.get(MESSAGE)
    params: Any = cast("dict[str, Any]", message).get("params") if isinstance(message, dict) else None
    given: Any = cast("dict[str, Any]", params).get(name) if isinstance(params, dict) else None
    return given if isinstance(given, str) else ""


async def _gone(scope: Scope, receive: Receive, send: Send) -> None:
    await Response(session_not_found(), 404, media_type="application/json")(scope, receive, send)


def _naming(name: str, send: Send) -> Send:
    """`send` that puts the replica's name in front of the SDK's session ids."""

    async def named(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [
                (key, f"{name}.".encode() + value if key.lower() == _SESSION else value)
                for key, value in message["headers"]
            ]
        await send(message)

    return named
