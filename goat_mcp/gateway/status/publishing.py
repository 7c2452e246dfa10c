"""Keeps `status/PID.json` true while a process serves: written on change, and now and then for what tells of no change.

It begins after the start, and nothing of it is on the way of a call.
"""

from __future__ import annotations

import time

import anyio
import anyio.to_thread

from goat_mcp.core.resources import Announcements
from goat_mcp.gateway.status.gateway_status import STATUS_URI, GatewayStatus
from goat_mcp.gateway.status.process_files import ProcessFiles
from goat_mcp.state.database import Warn

DEBOUNCE_S = 0.25
MAX_DEBOUNCE_S = 2.0
REST_SHARE = 20.0
"""How many times as long as writing took nothing is written: an upstream that keeps changing its state, and many of
them, must not take more than a twentieth of the time of a processor with it."""
REFRESH_S = 10.0


class StatusPublisher:
    """One per serving process."""

    def __init__(self, status: GatewayStatus, files: ProcessFiles, announcements: Announcements, warn: Warn) -> None:
        self._status = status
        self._files = files
        self._warn = warn
        self._changed = anyio.Event()
        self._written: object = None
        announcements.listen(self._heard, lambda uri, principal: uri == STATUS_URI)

    async def run(self) -> None:
        """Until cancelled; then the file is removed."""
        try:
            await anyio.to_thread.run_sync(self._files.running)  # clears away what others left
            while True:
                self._changed = anyio.Event()
                began_s = time.monotonic()
                await self._write()
                rest_s = min((time.monotonic() - began_s) * REST_SHARE, MAX_DEBOUNCE_S)
                with anyio.move_on_after(REFRESH_S):
                    await self._changed.wait()
                await anyio.sleep(max(DEBOUNCE_S, rest_s))
        finally:
            self._files.remove()

    def _heard(self, uri: str, principal: str | None) -> None:
        if uri == STATUS_URI:
            self._changed.set()

    async def _write(self) -> None:
        raw = self._status.raw()
        # To the end, also when we are cancelled meanwhile: the file that is removed then is the last one written.
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._write_in_thread, raw)

    def _write_in_thread(self, raw: dict[str, object]) -> None:
        document = self._status.without_secrets(raw)
        if document == self._written:
            return
        try:
            self._files.write(document)
            self._written = document
        except OSError as problem:
            self._warn("status not written", problem=problem.strerror or str(problem))
            self._written = document  # told once, not every time
