"""Pipes for an event loop that cannot watch them: on Windows those that we did not make, elsewhere redirected files.

A thread each reads or writes, as an asyncio transport. It owns its descriptor and closes it when it is done: to close
one while another thread reads it blocks on Windows. The threads are daemons, since a read cannot be interrupted.
"""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections import deque
from contextlib import suppress
from typing import cast

_READ_BYTES = 256 * 1024
_HIGH_BYTES = 64 * 1024
FLUSH_S = 1.0
"""How long the end waits for what is still to be written."""


class ThreadReader(asyncio.ReadTransport):
    """Gives what a descriptor has to a protocol, one piece after the other has been taken."""

    def __init__(self, descriptor: int, protocol: asyncio.Protocol, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._protocol = protocol
        self._loop = loop
        self._is_closing = False
        self._may_read = threading.Event()
        self._may_read.set()
        self._was_taken = threading.Event()
        protocol.connection_made(self)
        threading.Thread(target=self._run, name="pipe reader", daemon=True).start()

    def pause_reading(self) -> None:
        """A piece that is being read still comes."""
        self._may_read.clear()

    def resume_reading(self) -> None:
        self._may_read.set()

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        """Nothing more is given on. The descriptor closes when its other end does."""
        self._is_closing = True
        self._may_read.set()
        self._was_taken.set()

    def _run(self) -> None:
        problem: OSError | None = None
        try:
            while not self._is_closing and (data := os.read(self._descriptor, _READ_BYTES)):
                self._was_taken.clear()
                self._loop.call_soon_threadsafe(self._take, data)
                self._was_taken.wait()
                self._may_read.wait()
        except OSError as lost:
            problem = lost
        except RuntimeError:  # the loop is closed: nobody listens any more
            return
        finally:
            os.close(self._descriptor)
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._lost, problem)

    def _take(self, data: bytes) -> None:
        if not self._is_closing:
            self._protocol.data_received(data)
        self._was_taken.set()

    def _lost(self, problem: OSError | None) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._protocol.connection_lost(problem)


class ThreadWriter(asyncio.WriteTransport):
    """Writes to a descriptor what it is given, in order."""

    def __init__(self, descriptor: int, protocol: asyncio.BaseProtocol, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._protocol = protocol
        self._loop = loop
        self._high_bytes = _HIGH_BYTES
        self._held: deque[bytes] = deque()
        self._held_bytes = 0
        self._is_paused = False
        self._is_closing = False
        self._news = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="pipe writer", daemon=True)
        self._thread.start()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """`low` is not used: writing goes on once nothing is held."""
        self._high_bytes = _HIGH_BYTES if high is None else high
        self._pause_or_resume()

    def get_write_buffer_size(self) -> int:
        return self._held_bytes

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._is_closing or not data:
            return
        with self._news:
            self._held.append(bytes(data))
            self._held_bytes += len(data)
            self._news.notify()
        self._pause_or_resume()

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        """Close the pipe once all is written, or nobody has read it for `FLUSH_S`, for which this waits."""
        with self._news:
            self._is_closing = True
            self._news.notify()
        self._thread.join(FLUSH_S)

    def abort(self) -> None:
        with self._news:
            self._held.clear()
        self.close()

    def _run(self) -> None:
        problem: OSError | None = None
        try:
            while (data := self._next()) is not None:
                self._write_all(data)
                self._loop.call_soon_threadsafe(self._was_written, len(data))
        except OSError as lost:
            problem = lost
        except RuntimeError:  # the loop is closed; what is held is still wanted
            with suppress(OSError):
                while (data := self._next()) is not None:
                    self._write_all(data)
            return
        finally:
            os.close(self._descriptor)
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._lost, problem)

    def _next(self) -> bytes | None:
        with self._news:
            while not self._held and not self._is_closing:
                self._news.wait()
            data = b"".join(self._held)
            self._held.clear()
            return data or None

    def _write_all(self, data: bytes) -> None:
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest[:_READ_BYTES]) :]
        except OSError as problem:
            if problem.errno == errno.EINVAL:  # how Windows says that nobody reads any more
                raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE)) from None
            raise

    def _was_written(self, count: int) -> None:
        self._held_bytes -= count
        self._pause_or_resume()

    def _pause_or_resume(self) -> None:
        protocol = cast("asyncio.Protocol", self._protocol)
        if not self._is_paused and self._held_bytes > self._high_bytes:
            self._is_paused = True
            protocol.pause_writing()
        elif self._is_paused and self._held_bytes == 0:
            self._is_paused = False
            protocol.resume_writing()

    def _lost(self, problem: OSError | None) -> None:
        self._is_closing = True
        self._protocol.connection_lost(problem)
