"""How the event loop learns that a child has ended.

Before 3.12 Python's asyncio starts a thread for each child and waits until it runs: each start of a child delays
everything else by as long as a busy machine takes to give that thread its turn. Newer ones do so unasked.
"""

from __future__ import annotations

import asyncio
import os
import sys


def watch_exits_without_threads() -> None:
    """For the event loops that this process runs from now on. Where the kernel cannot do it nothing changes."""
    if sys.version_info >= (3, 12) or not hasattr(os, "pidfd_open"):
        return
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:  # an old kernel, or a container that forbids it
        return
    asyncio.set_child_watcher(asyncio.PidfdChildWatcher())  # pyright: ignore[reportDeprecated]  # this is 3.11
