"""What replicas tell each other, over pub/sub: that something they can look at has changed, and never what it is now.

An event that is lost costs a late look, nothing else. After the connection was lost, everything may have changed.
"""

from __future__ import annotations

import json
import secrets
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, cast

import anyio
import anyio.from_thread
import anyio.lowlevel

from goat_mcp.core.errors import ToolError
from goat_mcp.state.database import Warn
from goat_mcp.state.redis.connection import RedisConnection

CHANNEL = "events"
MAX_PENDING = 1000
"""Events that are not sent yet; past that the oldest is lost."""
MAX_MESSAGE_CHARS = 64 * 1024
FIRST_PAUSE_S, LAST_PAUSE_S = 0.2, 5.0
"""Before the first and each later try to listen again."""

Listener = Callable[[Sequence[str]], None]
"""Gets the facts of an event. It must not block, and runs on the event loop."""


class SharedEvents:
    """Of one process. Its own events do not come back to it."""

    def __init__(self, redis: RedisConnection, warn: Warn) -> None:
        self._redis = redis
        self._warn = warn
        self._me = secrets.token_hex(8)
        self._listeners: dict[str, list[Listener]] = {}
        self._gaps: list[Callable[[], None]] = []
        self._pending: deque[str] = deque(maxlen=MAX_PENDING)
        self._wake = anyio.Event()
        self._token: anyio.lowlevel.EventLoopToken | None = None

    def listen(self, kind: str, listener: Listener) -> None:
        self._listeners.setdefault(kind, []).append(listener)

    def on_gap(self, listener: Callable[[], None]) -> None:
        """Called when events may have been missed: after each connection but the first."""
        self._gaps.append(listener)

    def announce(self, kind: str, *facts: str) -> None:
        """Tell the other replicas, soon. Returns at once, in any thread; before `run` nobody can listen to us."""
        self._pending.append(json.dumps({"from": self._me, "kind": kind, "facts": facts}))
        if self._token is not None:
            try:
                anyio.lowlevel.current_token()
            except RuntimeError:  # a worker thread
                anyio.from_thread.run_sync(self._wake_up, token=self._token)
            else:
                self._wake.set()

    async def run(self) -> None:
        """Send and receive until cancelled, whatever happens to the connection."""
        self._token = anyio.lowlevel.current_token()
        async with anyio.create_task_group() as group:
            group.start_soon(self._send)
            group.start_soon(self._receive)

    def _wake_up(self) -> None:
        self._wake.set()

    async def _send(self) -> None:
        while True:
            while self._pending:
                message = self._pending.popleft()
                try:
                    await self._redis.publish(CHANNEL, message)
                except ToolError:
                    self._pending.clear()  # those who cannot hear them look again when they can
            self._wake = anyio.Event()
            if not self._pending:
                await self._wake.wait()

    async def _receive(self) -> None:
        pause_s, is_first, is_reported = FIRST_PAUSE_S, True, False
        while True:
            try:
                async with self._redis.listening(CHANNEL) as next_message:
                    if not is_first:
                        self._call_all(self._gaps)
                    pause_s, is_first, is_reported = FIRST_PAUSE_S, False, False
                    while True:
                        if (message := await next_message()) is not None:
                            self._deliver(message[1])
            except ToolError as lost:
                if not is_reported:
                    self._warn("the shared state is out of reach", problem=lost.message)
                is_first, is_reported = False, True
            await anyio.sleep(pause_s)
            pause_s = min(2 * pause_s, LAST_PAUSE_S)

    def _deliver(self, message: str) -> None:
        event = _event(message)
        if event is None or event[0] == self._me:
            return
        _, kind, facts = event
        self._call_all([lambda one=one: one(facts) for one in self._listeners.get(kind, ())])

    def _call_all(self, listeners: Sequence[Callable[[], None]]) -> None:
        for listener in list(listeners):
            try:
                listener()
            except Exception as problem:  # one that fails must not take the others' events
                self._warn("an event was not handled", problem=f"{type(problem).__name__}: {problem}")


def _event(message: str) -> tuple[str, str, tuple[str, ...]] | None:
    """Sender, kind and facts. None for what no replica of ours has sent."""
    if len(message) > MAX_MESSAGE_CHARS:
        return None
    try:
        found: Any = json.loads(message)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    event = cast("dict[str, Any]", found)
    sender, kind, facts = event.get("from"), event.get("kind"), event.get("facts")
    if not isinstance(sender, str) or not isinstance(kind, str) or not isinstance(facts, list):
        return None
    texts = tuple(fact for fact in cast("list[Any]", facts) if isinstance(fact, str))
    return (sender, kind, texts) if len(texts) == len(cast("list[Any]", facts)) else None
