"""`status/PID.json` in the state directory: what each serving process reports about itself.

A file of a process that is gone, or whose number another process has by now, is never shown, and removed when found.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.to_thread

from goat_mcp.core.resources import Announcements
from goat_mcp.processes.process_table import living_process
from goat_mcp.state.database import Warn
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.private_file import TEMP_PREFIX, write_private

if TYPE_CHECKING:  # whoever only reads the files does without
    from goat_mcp.gateway.status.gateway_status import GatewayStatus
    from goat_mcp.gateway.status.last_runs import LastRuns
    from goat_mcp.gateway.status.running_work import RunningWork
    from goat_mcp.upstreams.status import UpstreamStatus

_STATUS_URI = "goat://status"
_FOLDER = "status"
_SUFFIX = ".json"
DEBOUNCE_S = 0.25
MAX_DEBOUNCE_S = 2.0
REST_SHARE = 20.0
"""How many times as long as writing took nothing is written: an upstream that keeps changing its state, and many of
them, must not take more than a twentieth of the time of a processor with it."""
REFRESH_S = 10.0
LOOK_S = 0.5
"""How often it looks whether a call has begun to take long, has reported progress, or has ended."""


class ProcessFiles:
    """Reads all of them; writes the one of this process."""

    def __init__(self, state: StateDirectory) -> None:
        self._state = state

    @property
    def own_path(self) -> Path:
        return self._state.folder(_FOLDER) / f"{os.getpid()}{_SUFFIX}"

    def write(self, document: Mapping[str, Any]) -> None:
        """Raises `OSError`."""
        own = living_process(os.getpid())
        stamped = {**document, "process_started": own.started if own is not None else 0}
        write_private(self.own_path, json.dumps(stamped).encode("ascii"))

    def remove(self) -> None:
        with suppress(OSError):
            self.own_path.unlink()

    def running(self) -> list[dict[str, Any]]:
        """The documents of processes that run now, the oldest number first. Clears away what is left of others."""
        try:
            files = sorted(self._state.folder(_FOLDER).iterdir())
        except OSError:
            return []
        found = [self._read(file) for file in files]
        return sorted((document for document in found if document is not None), key=lambda each: each["pid"])

    def _read(self, file: Path) -> dict[str, Any] | None:
        pid = file.name.removeprefix(TEMP_PREFIX).partition(".")[0]
        process = living_process(int(pid)) if pid.isdigit() and len(pid) < 10 else None
        if process is None:
            with suppress(OSError):
                file.unlink()
            return None
        if file.name != f"{pid}{_SUFFIX}":
            return None
        try:
            document: Any = json.loads(file.read_bytes())
        except (OSError, ValueError):
            return None
        match document:
            case {"pid": int(owner), "process_started": int(started)} if (owner, started) == (
                int(pid),
                process.started,
            ):
                return cast("dict[str, Any]", document)
            case _:
                # Of an earlier process that had this number. Its own first write replaces it.
                return None


class StatusPublisher:
    """Keeps the file of this process true while it serves: written on change, and now and then for the rest.

    It begins after the start, and nothing of it is on the way of a call.
    """

    def __init__(
        self,
        status: GatewayStatus,
        files: ProcessFiles,
        announcements: Announcements,
        warn: Warn,
        last_runs: LastRuns | None = None,
        running: RunningWork | None = None,
    ) -> None:
        self._status = status
        self._files = files
        self._last_runs = last_runs
        self._running = running
        self._warn = warn
        self._changed = anyio.Event()
        self._written: object = None
        announcements.listen(self._status_changed, lambda uri, principal: uri == _STATUS_URI)

    async def run(self) -> None:
        """Until cancelled; then the file is removed."""
        try:
            await anyio.to_thread.run_sync(self._files.running)  # clears away what others left
            while True:
                self._changed = anyio.Event()
                began_s = time.monotonic()
                mark = self._running_mark()
                await self._write()
                rest_s = min((time.monotonic() - began_s) * REST_SHARE, MAX_DEBOUNCE_S)
                with anyio.move_on_after(REFRESH_S):
                    await self._news(mark)
                await anyio.sleep(max(DEBOUNCE_S, rest_s))
        finally:
            self._files.remove()

    def _status_changed(self, uri: str, principal: str | None) -> None:
        if uri == _STATUS_URI:
            self._changed.set()

    def _running_mark(self) -> object:
        return None if self._running is None else self._running.mark()

    async def _news(self, mark: object) -> None:
        """Until something is not as it was written. Calls announce nothing: most are over in a moment."""
        while not self._changed.is_set() and self._running_mark() == mark:
            with anyio.move_on_after(LOOK_S):
                await self._changed.wait()

    async def _write(self) -> None:
        statuses = await self._status.upstreams()
        raw, configs = self._status.without_upstreams(statuses), self._status.configs
        # To the end, also when we are cancelled meanwhile: the file that is removed then is the last one written.
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._write_in_thread, raw, statuses)
            if self._last_runs is not None:
                await anyio.to_thread.run_sync(self._last_runs.update, statuses, configs)

    def _write_in_thread(self, raw: Mapping[str, Any], statuses: Sequence[UpstreamStatus]) -> None:
        document = self._status.without_secrets(self._status.with_upstreams(raw, statuses))
        if document == self._written:
            return
        try:
            self._files.write(document)
            self._written = document
        except OSError as problem:
            self._warn("status not written", problem=problem.strerror or str(problem))
            self._written = document  # logged once, not every time
