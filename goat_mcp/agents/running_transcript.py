"""The transcript of an agent that runs, kept after its turns, so that it can be resumed when this process is killed.

How one is stored is `records`; the last word on an agent that has ended is the spawner's.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import anyio
import anyio.to_thread

from goat_mcp.agents.engine import AgentState

PAUSE_S = 1.0
_SHARE_OF_TIME = 20
"""A long transcript is written as seldom as it takes to spend no more than a twentieth of the time on it."""


class RunningTranscript:
    """Writes the newest state in a thread: the first at once, then one at a time with a pause between.

    `write` may raise `OSError`, of which `on_problem` is told once.
    """

    def __init__(self, write: Callable[[AgentState], None], on_problem: Callable[[OSError], None]) -> None:
        self._write = write
        self._on_problem = on_problem
        self._newest: AgentState | None = None
        self._has_news = asyncio.Event()
        self._in_use = threading.Lock()
        self._is_over = False

    def put(self, state: AgentState) -> None:
        """Have it written soon; never waits."""
        self._newest = state
        self._has_news.set()

    @asynccontextmanager
    async def kept(self) -> AsyncGenerator[None]:
        """While this is open, what is put is written. Afterwards nothing is, not even what was on its way."""
        # A task rather than a task group, which would wrap what goes wrong inside.
        writer = asyncio.create_task(self._write_news())
        try:
            yield
        finally:
            writer.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait({writer})
                await anyio.to_thread.run_sync(self._end)

    async def _write_news(self) -> None:
        while True:
            await self._has_news.wait()
            self._has_news.clear()
            since_s = time.monotonic()
            try:
                await anyio.to_thread.run_sync(self._write_newest)
            except OSError as problem:
                self._on_problem(problem)
                return
            await anyio.sleep(max(PAUSE_S, (time.monotonic() - since_s) * _SHARE_OF_TIME))

    def _write_newest(self) -> None:
        with self._in_use:
            if self._newest is not None and not self._is_over:
                self._write(self._newest)

    def _end(self) -> None:
        with self._in_use:  # a thread goes on when its task is cancelled
            self._is_over = True
