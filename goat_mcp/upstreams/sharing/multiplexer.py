"""One process of an upstream and the sessions that share it: whose each answer, notification and question is.

Frames pass as they are but for ids and progress tokens, which are made unique for the process. Nothing is judged here:
what a session makes of an answer is its own business. No I/O, no clock. Contract: WSP-1, FLW-1, FLW-2, FLW-4.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from mcp_types import (
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from goat_mcp.core.calling_client import ClientRequest
from goat_mcp.upstreams.envelope import RESERVED_PREFIX, STATELESS_VERSION
from goat_mcp.upstreams.transports.server_requests import covers, more_verbose, required_for

CALLS = frozenset({"tools/call", "prompts/get", "resources/read", "completion/complete"})
"""What a log message may be about. Lists and change streams are about nobody's work."""
CANCELLED = "notifications/cancelled"
_INITIALIZED = "notifications/initialized"
_LOG = "notifications/message"
_UPDATED = "notifications/resources/updated"
_PROGRESS = "notifications/progress"
_SUBSCRIPTION = f"{RESERVED_PREFIX}subscriptionId"
_METHOD_NOT_FOUND, _INVALID_REQUEST = -32601, -32600
_ABOUT = ("protocolVersion", "capabilities", "clientInfo")

Id = int | str


class Channel(Protocol):
    """One session's way to the process. Nothing here blocks."""

    def deliver(self, frame: dict[str, Any]) -> None:
        """Send the session a frame."""
        ...

    def failed(self, request_id: Id, error: ErrorData) -> None:
        """Send the session an error that the process answered with, or that stands for a broken answer."""
        ...

    def leave_when_idle(self) -> None:
        """The session must get a process of its own, as soon as it waits for nothing."""
        ...


@dataclass(frozen=True)
class _Pending:
    channel: Channel
    request_id: Id
    method: str
    token: Any = None
    """The session's progress token; None if it wants no progress."""
    uri: str = ""


@dataclass
class _Handshake:
    about: str
    capabilities: Mapping[str, Any]
    result: dict[str, Any] | None = None
    waiting: list[tuple[Channel, Id]] = field(default_factory=list[tuple[Channel, Id]])


class Multiplexer:
    """Of one process. `write` puts a message into its pipe and says whether anybody reads there."""

    def __init__(self, write: Callable[[JSONRPCMessage], bool], asks: Callable[[], bool]) -> None:
        """`asks`: whether the upstream has ever asked a client anything: then a session that can be asked is alone."""
        self._write = write
        self._asks = asks
        self._ids = itertools.count(1)
        self._pending: dict[int, _Pending] = {}
        self._questions: dict[Id, Channel] = {}
        self._watched: dict[str, set[Channel]] = {}
        """Which resources a session has subscribed to."""
        self._level = ""
        self._handshake: _Handshake | None = None
        self._is_initialized = False
        self._members: set[Channel] = set()
        self._had_members = 0
        """How many sessions have made a handshake here, those that have left included."""
        self.channels: set[Channel] = set()
        self.owner: Channel | None = None
        """The only session that may use it: the upstream asks that one."""
        self.is_retired = False
        """Whether no other session may join."""
        self.is_stateless = False
        self.has_answered = False
        self.has_asked = False

    @property
    def is_ready(self) -> bool:
        """Whether a session that joins can use it."""
        return self.is_stateless or (self._handshake is not None and self._handshake.result is not None)

    def fits(self, channel: Channel, params: Mapping[str, Any]) -> bool:
        """Whether this session may make its handshake here."""
        if self.is_retired or self.is_stateless or self.owner not in (None, channel):
            return False
        if self._handshake is None:
            return True
        return self._handshake.about == _about(params) and not (self._asks() and _capabilities(params))

    def open_requests(self, channel: Channel) -> list[Id]:
        """What the process may have begun to work on for this session."""
        waiting = self._handshake.waiting if self._handshake is not None else []
        return [one.request_id for one in self._pending.values() if one.channel is channel] + [
            request_id for one, request_id in waiting if one is channel
        ]

    def waits(self, channel: Channel) -> bool:
        """Whether this session waits for an answer, or is asked something."""
        return bool(self.open_requests(channel)) or channel in self._questions.values()

    # From sessions

    def join(self, channel: Channel) -> None:
        self.channels.add(channel)

    def leave(self, channel: Channel) -> None:
        """A session is gone: its requests are cancelled, its questions answered, its subscriptions ended."""
        self.channels.discard(channel)
        self._members.discard(channel)
        for number, one in [(number, one) for number, one in self._pending.items() if one.channel is channel]:
            if one.method == "initialize":
                continue  # others may wait for it, and it must not be cancelled
            del self._pending[number]
            self._notify(CANCELLED, {"requestId": number, "reason": "the client is gone"})
            if one.method == "ping":
                # The session gives the process up for hung: whoever joins from now on should get another one.
                self.is_retired = True
        for asked in [request_id for request_id, whose in self._questions.items() if whose is channel]:
            del self._questions[asked]
            self._refuse(asked, _INVALID_REQUEST, "the client is gone")
        for uri in [uri for uri, watching in self._watched.items() if channel in watching]:
            if not self._unwatch(uri, channel):
                self._request("resources/unsubscribe", {"uri": uri})
        if self.owner is channel:
            self.is_retired = True
        if self._handshake is not None:
            self._handshake.waiting = [each for each in self._handshake.waiting if each[0] is not channel]

    def from_session(self, channel: Channel, frame: Mapping[str, Any]) -> bool:
        """One frame of a session. Returns False for a request that provably never reached the process."""
        method, request_id = frame.get("method"), frame.get("id")
        if isinstance(method, str):
            params = frame.get("params")
            given = cast("dict[str, Any]", params) if isinstance(params, dict) else None
            if request_id is None:
                return self._notified_by(channel, method, given)
            return self._requested_by(channel, cast("Id", request_id), method, given)
        answered = self._questions.get(cast("Id", request_id))
        if request_id is None or answered is not channel:
            return True
        del self._questions[request_id]
        if "error" in frame:
            error = ErrorData.model_validate(frame["error"])
            return self._write(JSONRPCError(jsonrpc="2.0", id=request_id, error=error))
        return self._write(
            JSONRPCResponse.model_construct(jsonrpc="2.0", id=request_id, result=cast("Any", frame.get("result")))
        )

    def _requested_by(self, channel: Channel, request_id: Id, method: str, params: dict[str, Any] | None) -> bool:
        about = params or {}
        if method == "initialize":
            return self._initialize(channel, request_id, about)
        if method == "logging/setLevel":
            level = str(about.get("level"))
            if self._level and not more_verbose(level, self._level):
                # Another session wants more. Each drops what it does not want.
                channel.deliver(_result(request_id, {}))
                return True
            # From the request on and not from its answer: the next one must not undo it.
            self._level = level
            return self._ask(_Pending(channel, request_id, method), params)
        if method == "resources/unsubscribe" and self._unwatch(str(about.get("uri")), channel):
            channel.deliver(_result(request_id, {}))
            return True
        if method == "resources/subscribe":
            self._watched.setdefault(uri := str(about.get("uri")), set()).add(channel)
            return self._ask(_Pending(channel, request_id, method, uri=uri), params)
        return self._ask(_Pending(channel, request_id, method, _token_in(about)), params)

    def _unwatch(self, uri: str, channel: Channel) -> bool:
        """Returns whether another session still watches it."""
        watching = self._watched.get(uri, set())
        watching.discard(channel)
        if not watching:
            self._watched.pop(uri, None)
        return bool(watching)

    def _ask(self, pending: _Pending, params: dict[str, Any] | None) -> bool:
        number = next(self._ids)
        if pending.token is not None and params is not None:
            params = {**params, "_meta": {**params["_meta"], "progressToken": number}}
        self._pending[number] = pending
        if self._write(_request(number, pending.method, params)):
            return True
        del self._pending[number]
        return False

    def _initialize(self, channel: Channel, request_id: Id, params: dict[str, Any]) -> bool:
        self._had_members += channel not in self._members
        self._members.add(channel)
        known = self._handshake
        if known is None:
            capabilities = _capabilities(params)
            self._handshake = _Handshake(_about(params), capabilities)
            if self._asks() and capabilities:
                self.owner = channel
            return self._ask(_Pending(channel, request_id, "initialize"), params)
        if known.result is None:
            known.waiting.append((channel, request_id))
        else:
            channel.deliver(_result(request_id, known.result))
        return True

    def _notified_by(self, channel: Channel, method: str, params: dict[str, Any] | None) -> bool:
        if method == CANCELLED:
            wanted = (params or {}).get("requestId")
            for number, one in self._pending.items():
                if one.channel is channel and one.request_id == wanted:
                    del self._pending[number]
                    self._notify(CANCELLED, {**(params or {}), "requestId": number})
                    break
            return True
        if method == _INITIALIZED:
            if self._is_initialized:
                return True
            self._is_initialized = True
        self._notify(method, params)
        return True

    # From the process

    def from_process(self, message: JSONRPCMessage) -> bool:
        """One message of the process. Returns False for an answer that nobody waits for."""
        if isinstance(message, JSONRPCNotification):
            self._notified(message)
        elif isinstance(message, JSONRPCRequest):
            self._asked(message)
        else:
            return self._answered(message)
        return True

    def _answered(self, message: JSONRPCResponse | JSONRPCError) -> bool:
        answered = _number(message.id)
        pending = self._pending.pop(answered, None) if answered is not None else None
        if pending is None:
            return False
        self.has_answered = True
        if isinstance(message, JSONRPCError):
            self._learn_refusal(pending, message.error)
            pending.channel.failed(pending.request_id, message.error)
            return True
        result = message.result
        self._learn(pending, result)
        pending.channel.deliver(_result(pending.request_id, _with_subscription(result, pending.request_id)))
        return True

    def _learn_refusal(self, pending: _Pending, error: ErrorData) -> None:
        if pending.method == "initialize" and self._handshake is not None:
            waiting, self._handshake = self._handshake.waiting, None
            for channel, request_id in waiting:
                channel.failed(request_id, error)
        elif pending.method == "logging/setLevel":
            self._level = ""
        elif pending.method == "resources/subscribe":
            self._unwatch(pending.uri, pending.channel)

    def _learn(self, pending: _Pending, result: dict[str, Any]) -> None:
        if pending.method == "initialize" and self._handshake is not None:
            self._handshake.result = result
            waiting, self._handshake.waiting = self._handshake.waiting, []
            for channel, request_id in waiting:
                channel.deliver(_result(request_id, result))
        elif pending.method == "server/discover" and self._handshake is None:
            versions = result.get("supportedVersions")
            self.is_stateless = self.is_stateless or (isinstance(versions, list) and STATELESS_VERSION in versions)

    def _notified(self, message: JSONRPCNotification) -> None:
        method, params = message.method, message.params
        about: dict[str, Any] = params or {}
        if method == _PROGRESS:
            pending = self._pending.get(number) if (number := _number(about.get("progressToken"))) is not None else None
            if pending is not None and pending.token is not None:
                pending.channel.deliver(_notification(method, {**about, "progressToken": pending.token}))
            return
        if method == CANCELLED:
            asked = about.get("requestId")
            whose = self._questions.pop(asked, None) if isinstance(asked, int | str) else None
            if whose is not None:
                whose.deliver(_notification(method, params))
            return
        meta = about.get("_meta")
        if isinstance(meta, dict) and _SUBSCRIPTION in meta:
            of_stream = _number(cast("dict[str, Any]", meta)[_SUBSCRIPTION])
            stream = self._pending.get(of_stream) if of_stream is not None else None
            if stream is not None:
                stream.channel.deliver(_notification(method, _with_subscription(about, stream.request_id)))
            return
        for channel in list(self._receivers(method, about)):
            channel.deliver(_notification(method, params))

    def _receivers(self, method: str, params: Mapping[str, Any]) -> Collection[Channel]:
        if method == _LOG:
            return self._log_receivers()
        if method == _UPDATED:
            # It may be part of what they have subscribed to.
            return self._watched.get(str(params.get("uri"))) or set[Channel]().union(*self._watched.values())
        return self.channels

    def _log_receivers(self) -> Collection[Channel]:
        """Whose call a message is about; between calls all sessions. Of two sessions' calls, none."""
        calling = {one.channel for one in self._pending.values() if one.method in CALLS}
        return (calling or self.channels) if len(calling) < 2 else ()

    def _asked(self, request: JSONRPCRequest) -> None:
        if request.method == "ping":
            self._write(JSONRPCResponse(jsonrpc="2.0", id=request.id, result={}))
            return
        required = required_for(ClientRequest(request.method, request.params or {}))
        declared: Mapping[str, Any] = self._handshake.capabilities if self._handshake is not None else {}
        if not covers(declared, required):
            self._refuse(request.id, _METHOD_NOT_FOUND, f"no capability was declared for {request.method[:100]}")
            return
        self.has_asked = True
        if self._had_members == 1 and self._members:
            (self.owner,) = self._members
            self._questions[request.id] = self.owner
            self.owner.deliver(_frame(method=request.method, id=request.id, params=request.params))
            return
        self._refuse(request.id, _INVALID_REQUEST, "several sessions have used this process: whose question is this?")
        self.is_retired = True
        for member in list(self._members):
            member.leave_when_idle()

    def _refuse(self, request_id: Id, code: int, message: str) -> None:
        self._write(JSONRPCError(jsonrpc="2.0", id=request_id, error=ErrorData(code=code, message=message)))

    def _request(self, method: str, params: dict[str, Any]) -> None:
        """A request of our own, whose answer nobody needs."""
        self._write(_request(next(self._ids), method, params))

    def _notify(self, method: str, params: dict[str, Any] | None) -> None:
        self._write(JSONRPCNotification.model_construct(jsonrpc="2.0", method=method, params=params))


def _request(number: int, method: str, params: dict[str, Any] | None) -> JSONRPCRequest:
    return JSONRPCRequest.model_construct(jsonrpc="2.0", id=number, method=method, params=params)


def _result(request_id: Id, result: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def _notification(method: str, params: dict[str, Any] | None) -> dict[str, Any]:
    return _frame(method=method, params=params)


def _frame(**members: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", **{name: value for name, value in members.items() if value is not None}}


def _about(params: Mapping[str, Any]) -> str:
    """What makes one handshake differ from another."""
    return json.dumps([params.get(name) for name in _ABOUT], sort_keys=True)


def _capabilities(params: Mapping[str, Any]) -> Mapping[str, Any]:
    declared = params.get("capabilities")
    return cast("dict[str, Any]", declared) if isinstance(declared, dict) else {}


def _token_in(params: Mapping[str, Any]) -> Any:
    meta = params.get("_meta")
    return cast("dict[str, Any]", meta).get("progressToken") if isinstance(meta, dict) else None


def _number(value: object) -> int | None:
    """An id of ours, which some servers send back as text."""
    if isinstance(value, str):
        return int(value) if value.isdecimal() and len(value) < 16 else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _with_subscription(params: dict[str, Any], request_id: Id) -> dict[str, Any]:
    """With the session's own id of a change stream, if it names one."""
    meta = params.get("_meta")
    if not isinstance(meta, dict) or _SUBSCRIPTION not in meta:
        return params
    return {**params, "_meta": {**cast("dict[str, Any]", meta), _SUBSCRIPTION: request_id}}
