"""How asyncio watches child processes and reads their output, where its own way is too slow for us."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from typing import cast

from goat_mcp.core import platform, posix


def watch_exits_without_threads() -> None:
    """For the event loops that this process runs from now on. Where the kernel cannot do it nothing changes."""
    if sys.version_info >= (3, 12) or not platform.HAS_PIDFD:
        return
    try:
        os.close(posix.pidfd_open(os.getpid()))
    except OSError:  # an old kernel, or a container that forbids it
        return
    watcher = getattr(asyncio, "PidfdChildWatcher")  # noqa: B009  # other systems' asyncio does not have the name
    asyncio.set_child_watcher(watcher())  # pyright: ignore[reportDeprecated]  # this is 3.11


class _Output(asyncio.Protocol):
    """Takes the data; the end goes to the protocol `instead` of which it is there, and so comes after it."""

    def __init__(self, take: Callable[[bytes], None], instead: asyncio.Protocol) -> None:
        self._take = take
        self._instead = instead

    def data_received(self, data: bytes) -> None:
        self._take(data)

    def eof_received(self) -> bool | None:
        return self._instead.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._instead.connection_lost(exc)


def read_at_once(pipe: asyncio.ReadTransport, take: Callable[[bytes], None]) -> None:
    """From now on `take` is called with what comes out of a child's `pipe`. For `SubprocessProtocol.connection_made`:
    what came before that, `pipe_data_received` gets."""
    pipe.set_protocol(_Output(take, cast("asyncio.Protocol", pipe.get_protocol())))
