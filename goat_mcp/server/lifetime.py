"""When this process ends: a signal, or a parent that died (R-STOP-1, R-STOP-2)."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

import anyio

from goat_mcp.processes import ProcessGuard
from goat_mcp.processes.stop_signals import StopSignals

PARENT_POLL_S = 0.5


@contextmanager
def stopping_on_signals(stop: Callable[[], object], guard: ProcessGuard) -> Generator[None]:
    """Call `stop` on the event loop at SIGINT, and at a SIGTERM that none of our own commands sent.

    Where the sender of a signal is not told, every SIGTERM counts. Enter it before any thread starts.
    """
    loop = asyncio.get_running_loop()

    def stop_soon() -> None:
        loop.call_soon_threadsafe(stop)

    if sys.platform == "win32":
        yield  # no signals in its event loop; Ctrl-C raises KeyboardInterrupt
        return
    term = StopSignals(stop_soon, guard) if StopSignals.block() else None
    if term is not None:
        term.start()
    else:
        loop.add_signal_handler(signal.SIGTERM, stop)
    loop.add_signal_handler(signal.SIGINT, stop)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        if term is not None:
            term.close()


async def stop_when_orphaned(parent: int, stop: Callable[[], None]) -> None:
    """Call `stop` once `parent` is no longer our parent, even where another process keeps our stdin open.

    `parent` is read before anything slow is imported: it may die while we start.
    """
    while os.getppid() == parent:  # noqa: ASYNC110  # nothing tells of a parent's end; it has to be looked at
        await anyio.sleep(PARENT_POLL_S)
    stop()
