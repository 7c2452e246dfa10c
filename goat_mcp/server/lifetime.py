"""When this process ends: signals, a parent that died, and a shutdown that takes 5 s at most (R-STOP-1, R-STOP-2)."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

import anyio

PARENT_POLL_S = 0.5


async def stop_on_signal(stop: Callable[[], None]) -> None:
    """Call `stop` at the first SIGTERM or SIGINT."""
    if sys.platform == "win32":
        return  # the event loop has no signal support there; Ctrl-C raises KeyboardInterrupt instead
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            stop()
            return


async def stop_when_orphaned(stop: Callable[[], None]) -> None:
    """Call `stop` once our parent is gone, even where another process keeps our stdin open."""
    parent = os.getppid()
    while parent > 1:
        await anyio.sleep(PARENT_POLL_S)
        if os.getppid() != parent:
            stop()
            return
