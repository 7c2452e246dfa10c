"""What a child process prints, taken in the turn of the event loop that reads it: asyncio hands it on in the next one,
which is a good part of the time that a short call to the process takes. How a child is started is not known here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast


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
