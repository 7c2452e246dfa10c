"""The calls in flight at one connection, and what the upstream says to their clients meanwhile.

In the handshake era its questions and log messages do not say which call they are about: they belong to the one
client that has calls in flight. Where several have, nobody is asked, and each client gets a connection of its own
from then on (WSP-1).
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol
from weakref import WeakKeyDictionary, WeakValueDictionary

import anyio

from goat_mcp.core.calling_client import CallingClient, ClientRefused, ClientRequest, NotificationTarget, RootsOf
from goat_mcp.core.context import ToolContext
from goat_mcp.core.token_bucket import TokenBucket
from goat_mcp.files.documents.visible_text import make_json_visible
from goat_mcp.upstreams.call_timeout import CallClock
from goat_mcp.upstreams.envelope import passing_meta, strip_result
from goat_mcp.upstreams.transports.server_requests import (
    KIND_OF,
    ROOTS,
    covers,
    declared_for,
    is_wanted,
    labelled,
    required_for,
    roots_result,
)

MAX_UNSENT = 256
"""Log messages kept for clients that are slow to take them; the oldest go."""
SEND_TIMEOUT_S = 2.0
LOGS_PER_S = 100.0
LOGS_AT_ONCE = 500.0
"""Log messages of one connection that are passed on; what goes beyond is counted and dropped (R-UP-3)."""
MAX_URL_ELICITATIONS = 100
_METHOD_NOT_FOUND = -32601
_INVALID_REQUEST = -32600


class LendablePermit(Protocol):
    """For one of the few requests that an upstream works on at a time."""

    def lent(self) -> AbstractAsyncContextManager[None]:
        """Until the block ends it is free for others."""
        ...


class Caller:
    """One call, in flight from entering to leaving: who made it, its clock, and its permits in the order of taking."""

    # Written out: a generator as a context costs three times as much, and every call has one of these.
    __slots__ = ("_callers", "client", "clock", "is_asking", "is_left", "permits", "session_key")

    def __init__(self, callers: Callers, ctx: ToolContext, clock: CallClock, permits: Sequence[LendablePermit]) -> None:
        self._callers = callers
        self.session_key = ctx.session_key
        self.client = ctx.client
        self.clock = clock
        self.permits = permits
        self.is_asking = False
        self.is_left = ctx.is_left

    def __enter__(self) -> Caller:
        self._callers.begins(self)
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        self._callers.ends(self)


class _Unsent:
    """Messages for one client."""

    def __init__(self) -> None:
        self.messages: deque[tuple[str, Mapping[str, Any]]] = deque(maxlen=MAX_UNSENT)
        self.lock = anyio.Lock()


class Callers:
    """Of one connection. `declared` is what a handshake declares: its upstream may ask for that and no more."""

    def __init__(
        self,
        upstream: str,
        declared: Mapping[str, Any],
        *,
        allow: Collection[str],
        roots: RootsOf,
        asked: Callable[[], None] = lambda: None,
    ) -> None:
        """`allow`: the kinds of requests that are relayed. `asked` is called when the upstream asks a client."""
        self.declared = declared
        self._allow = allow
        self._upstream = upstream
        self._roots = roots
        self._on_asked = asked
        self._in_flight: list[Caller] = []
        self._sessions: set[str] = set()
        """All that have ever made a call here: who of them a question is for is known only if it is one."""
        self._asking: set[anyio.CancelScope] = set()
        self._showed_roots = False
        self._has_new_roots = False
        self._new_roots: Sequence[Path] = ()
        """The client's, as they are since it said that they had changed. It can be asked only during its calls."""
        self._notices: WeakValueDictionary[str, NotificationTarget] = WeakValueDictionary()
        self._of_url: WeakValueDictionary[str, NotificationTarget] = WeakValueDictionary()
        self._unsent: WeakKeyDictionary[NotificationTarget, _Unsent] = WeakKeyDictionary()
        self._news = anyio.Event()
        self._logs = TokenBucket(LOGS_PER_S, LOGS_AT_ONCE)
        self.dropped_logs = 0
        """Log messages that clients wanted and did not get, for there were too many."""

    def one(self, ctx: ToolContext, clock: CallClock, *permits: LendablePermit) -> Caller:
        """A call, in flight from entering to leaving. `permits` are lent while its client is asked."""
        return Caller(self, ctx, clock, permits)

    def begins(self, caller: Caller) -> None:
        self._sessions.add(caller.session_key)
        notices = caller.client.notices if caller.client is not None else None
        if notices is not None and self._notices.get(caller.session_key) is not notices:
            self._notices[caller.session_key] = notices
        self._in_flight.append(caller)

    def ends(self, caller: Caller) -> None:
        self._in_flight.remove(caller)
        if not self._in_flight:
            for scope in self._asking:
                # Nobody is left who waits for what the answer is for.
                scope.cancel()

    def declared_for(self, client: CallingClient | None) -> Mapping[str, Any]:
        """What a single request declares, where each does so for itself."""
        capabilities: Mapping[str, Any] = client.capabilities if client is not None else {}
        return declared_for(capabilities, self._allow)

    async def answer(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """A request of the upstream. Raises `ClientRefused`, at once for what was not declared (ERA-3)."""
        if method == "ping":
            return {}
        kind = KIND_OF.get(method)
        request = ClientRequest(method, params)
        if kind is None or not covers(self.declared, required_for(request)):
            raise ClientRefused(_METHOD_NOT_FOUND, f"goat-mcp declared no capability for {method[:100]}")
        if kind == ROOTS:
            self._showed_roots = True
            if not self._in_flight and self._new_roots:
                return roots_result(self._new_roots)
            if roots := self._roots(self._has_roots_of_its_own()):
                return roots_result(roots)
        self._on_asked()
        caller, client = self._answerer(request)
        self._remember_url(params, client)
        with anyio.CancelScope() as scope:
            self._asking.add(scope)
            try:
                async with self._asked(caller):
                    answers = await client.ask({"question": labelled(self._upstream, request)})
                return strip_result(answers["question"])
            finally:
                self._asking.discard(scope)
        if kind == ROOTS and self._new_roots:
            return roots_result(self._new_roots)
        raise ClientRefused(_INVALID_REQUEST, "the call that this was asked for is over")

    @asynccontextmanager
    async def _asked(self, caller: Caller) -> AsyncGenerator[None]:
        """A client is asked meanwhile, as far as can be known for this call."""
        async with AsyncExitStack() as lent:
            for permit in reversed(caller.permits):
                # Taken back in the order of taking, as all do: otherwise they would wait for each other.
                await lent.enter_async_context(permit.lent())
            with ExitStack() as clocks:
                for one in self._in_flight:
                    # Whichever of them it is about.
                    clocks.enter_context(one.clock.stopped())
                caller.is_asking = True
                try:
                    yield
                finally:
                    caller.is_asking = False

    @property
    def has_new_roots(self) -> bool:
        """Whether the upstream is still to be told that the roots of its client have changed."""
        return self._has_new_roots

    def roots_changed(self) -> None:
        """The client behind this connection has other roots now: its upstream hears of it if it knows the old ones."""
        if self._showed_roots and covers(self.declared, {ROOTS: {"listChanged": True}}):
            self._has_new_roots = True

    async def take_new_roots(self, client: CallingClient | None) -> bool:
        """Whether to notify the upstream, before this client's call, that the roots have changed."""
        if not self._has_new_roots or client is None:
            return False
        self._has_new_roots = False
        try:
            self._new_roots = () if self._roots(True) else await client.roots()
        except BaseException:
            # The call was given up while its client was asked: the next one tells.
            self._has_new_roots = True
            raise
        return True

    def _has_roots_of_its_own(self) -> bool:
        """Of the client whose call is in flight. Between calls nobody can be asked."""
        return any(caller.client is not None and ROOTS in caller.client.capabilities for caller in self._in_flight)

    def _answerer(self, request: ClientRequest) -> tuple[Caller, CallingClient]:
        if len(self._sessions) > 1:
            raise ClientRefused(
                _INVALID_REQUEST, "several clients have called over this connection: whose question is this?"
            )
        able = [
            (caller, caller.client)
            for caller in self._in_flight
            if caller.client is not None and covers(caller.client.capabilities, required_for(request))
        ]
        if not able:
            raise ClientRefused(_INVALID_REQUEST, "no call is in flight whose client can answer this")
        # Of several of one client's any will do that it waits for: the same person is asked.
        return min(able, key=lambda each: (each[0].is_left(), each[0].is_asking))

    def notified(self, method: str, params: Mapping[str, Any] | None) -> None:
        """A notification of the upstream; those that are not for clients are left alone."""
        about = params or {}
        if method == "notifications/message":
            wanting = [client for client in self._log_receivers() if is_wanted(about.get("level"), client.log_level)]
            if not wanting:
                return
            if not self._logs.take():
                self.dropped_logs += 1
                return
            logger = about.get("logger")
            about = {**about, "logger": f"{self._upstream}/{logger}" if logger else self._upstream}
            for client in wanting:
                self._send(client, method, about)
        elif method == "notifications/elicitation/complete":
            client = self._of_url.pop(str(about.get("elicitationId")), None)
            if client is not None:
                self._send(client, method, about)

    def _log_receivers(self) -> Sequence[NotificationTarget]:
        """Whose call a message is about; between calls all clients of the connection. Of two clients' calls, none."""
        if not self._in_flight:
            return list(self._notices.values())
        if len({caller.session_key for caller in self._in_flight}) > 1:
            return ()
        wanting = [caller.client for caller in self._in_flight if caller.client is not None and caller.client.log_level]
        return wanting[:1]

    def _send(self, client: NotificationTarget, method: str, params: Mapping[str, Any]) -> None:
        unsent = self._unsent.setdefault(client, _Unsent())
        about = {key: value for key, value in params.items() if key != "_meta"}
        if meta := passing_meta(params.get("_meta")):
            about["_meta"] = meta
        try:
            about = make_json_visible(about)
        except RecursionError:
            self.dropped_logs += 1
            return
        unsent.messages.append((method, about))
        self._news.set()

    async def flush(self, client: NotificationTarget) -> None:
        """Send this client all there is to send now, also what somebody else is just sending."""
        unsent = self._unsent.get(client)
        if unsent is None:
            return
        async with unsent.lock:
            while unsent.messages:
                method, params = unsent.messages.popleft()
                with anyio.move_on_after(SEND_TIMEOUT_S) as patience:
                    await client.notify(method, params)
                if patience.cancelled_caught:
                    # It does not read: nothing waits for it.
                    unsent.messages.clear()

    async def keep_sending(self) -> None:
        """Until cancelled."""
        while True:
            await self._news.wait()
            self._news = anyio.Event()
            async with anyio.create_task_group() as group:
                for client in list(self._unsent):
                    group.start_soon(self.flush, client)

    def _remember_url(self, params: Mapping[str, Any], client: CallingClient) -> None:
        if params.get("mode") == "url" and isinstance(name := params.get("elicitationId"), str) and client.notices:
            self._of_url[name] = client.notices
            if len(self._of_url) > MAX_URL_ELICITATIONS:
                self._of_url.pop(next(iter(self._of_url)))
