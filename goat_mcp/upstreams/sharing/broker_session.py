"""One session's connection to the broker: what is sent to it, and when it has to leave its process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any

import anyio
from mcp_types import ErrorData

from goat_mcp.upstreams.sharing.multiplexer import Id
from goat_mcp.upstreams.sharing.runtime_folder import has_hung_up
from goat_mcp.upstreams.sharing.shared_launch import Opening
from goat_mcp.upstreams.sharing.shared_process import SharedProcess
from goat_mcp.upstreams.transports.frames import MAX_FRAME_BYTES, encode

MAX_UNREAD_BYTES = 4 * MAX_FRAME_BYTES
"""A session that reads no more than this is cut off: the others should not wait for it."""


class BrokerSession:
    """Nothing here blocks. `scope` is that of the task that serves it."""

    def __init__(self, writer: asyncio.StreamWriter, opening: Opening, pid: int) -> None:
        self.pid = pid
        self.opening = opening
        self.scope = anyio.CancelScope()
        self.process: SharedProcess | None = None
        self.is_over = False
        """Whether the session knows that nothing more of it reaches the process."""
        self._writer = writer
        self._must_leave = False

    def deliver(self, frame: dict[str, Any]) -> None:
        if self.is_over or self._writer.is_closing():
            return
        self._writer.write(encode(frame))
        if self._writer.transport.get_write_buffer_size() > MAX_UNREAD_BYTES:
            self.scope.cancel()
        elif self._must_leave:
            # This may have been what it waited for.
            asyncio.get_running_loop().call_soon(self.leave_when_idle)

    def failed(self, request_id: Id, error: ErrorData) -> None:
        link = self.process.link if self.process is not None else None
        fault = link.marks.read(error.data) if link is not None else None
        if fault is not None:
            self.report("fault", {"id": request_id, "kind": str(fault.kind), "detail": fault.detail})
            return
        shown = error.model_dump(by_alias=True, exclude_unset=True)
        self.deliver({"jsonrpc": "2.0", "id": request_id, "error": shown})

    def report(self, kind: str, facts: Mapping[str, Any]) -> None:
        """Send a message of the broker's own."""
        params = {kind: {**facts, "broker": os.getpid()}}
        self.deliver({"jsonrpc": "2.0", "method": self.opening.control, "params": params})

    def end(self, facts: Mapping[str, Any]) -> None:
        """The connection ends with these last words."""
        self._must_leave = False
        self.report("ended", facts)
        self.is_over = True
        # The session closes it: who writes into a socket that is closed already never reads these words.
        self._writer.write_eof()

    def close(self) -> None:
        """Close the connection, after what was sent."""
        self._writer.close()

    def leave_when_idle(self) -> None:
        """Have it move to another process as soon as it waits for nothing."""
        process = self.process
        if process is None or self.is_over:
            return
        self._must_leave = process.frames.waits(self)
        if not self._must_leave:
            self.end(process.ending_for(self, has_moved=True))

    def look(self) -> None:
        """End what serves it if it is gone. Who waits until a process reads does not read the socket's end."""
        if has_hung_up(self._writer.get_extra_info("socket").fileno()):
            self.scope.cancel()
