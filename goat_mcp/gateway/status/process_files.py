"""`status/PID.json` in the state directory: what each serving process tells of itself.

A file of a process that is gone, or whose number another one has by now, is never shown and removed where it is met.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from goat_mcp.processes.process_table import living_process
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.private_file import TEMP_PREFIX, write_private

_FOLDER = "status"
_SUFFIX = ".json"


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
            case {"pid": int(told), "process_started": int(started)} if (told, started) == (int(pid), process.started):
                return cast("dict[str, Any]", document)
            case _:
                # Of an earlier process that had this number. Its own first write replaces it.
                return None
