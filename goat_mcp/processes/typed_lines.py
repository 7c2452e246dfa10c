"""A line that a person types. Reading it holds up neither a cancelled task nor the end of the process."""

from __future__ import annotations

import asyncio
import os
import threading
from contextlib import suppress

_CHUNK_BYTES = 65_536


async def typed_line(descriptor: int = 0) -> bytes:
    """The next line from a terminal, with its end; nothing at the end of input. Cancelling it takes effect at once.

    A thread that waits for a person cannot be ended: it is a daemon. It does not use `sys.stdin`, whose lock it would
    still hold when the interpreter ends.
    """
    loop = asyncio.get_running_loop()
    line: asyncio.Future[bytes] = loop.create_future()

    def deliver(data: bytes) -> None:
        if not line.done():
            line.set_result(data)

    def read() -> None:
        data = b""
        with suppress(OSError):  # a terminal that went away: the end of input
            while not data.endswith(b"\n") and (more := os.read(descriptor, _CHUNK_BYTES)):
                data += more
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(deliver, data)

    threading.Thread(target=read, name="typed line", daemon=True).start()
    return await line
