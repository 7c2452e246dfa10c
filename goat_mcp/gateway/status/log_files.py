"""`logs/PID.jsonl` in the state directory: a process's own log lines again, for where a host drops its stderr.

Lines come redacted. A file and the one before it are kept, each bounded; so are the files of processes that are gone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, cast

from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.own_file import open_own, replace_own

MAX_BYTES = 1024 * 1024
KEPT_FILES = 20
_FOLDER = "logs"
_SUFFIX = ".jsonl"
_OLDER = ".1"


class LogLine(NamedTuple):
    pid: int
    fields: dict[str, Any]

    @property
    def at(self) -> str:
        return str(self.fields.get("timestamp", ""))


class LogWriter:
    """Appends to the file of this process."""

    def __init__(self, state: StateDirectory) -> None:
        self._path = state.folder(_FOLDER) / f"{os.getpid()}{_SUFFIX}"
        self._bytes = 0
        _prune(self._path.parent)
        # What an earlier process of this number left.
        self._path.unlink(missing_ok=True)

    def write(self, line: str) -> None:
        """Never raises: a full disk must not stop a call."""
        data = line.encode("utf-8", "replace") + b"\n"
        with suppress(OSError):
            if self._bytes + len(data) > MAX_BYTES and self._bytes:
                replace_own(self._path, Path(f"{self._path}{_OLDER}"))
                self._bytes = 0
            descriptor = open_own(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            try:
                self._bytes += os.write(descriptor, data[:MAX_BYTES])
            finally:
                os.close(descriptor)


class LogReader:
    """Reads those of all processes, again and again."""

    def __init__(self, state: StateDirectory) -> None:
        self._folder = state.folder(_FOLDER)
        self._read: dict[str, int] = {}

    def new_lines(self) -> list[LogLine]:
        """What was written since the last time, oldest first; what is no log line is passed over."""
        found: list[LogLine] = []
        for path in _newest_first(self._folder):
            if path.name.endswith(_OLDER):
                if path.name not in self._read and path.name.removesuffix(_OLDER) not in self._read:
                    found += self._lines(path)
                self._read.setdefault(path.name, 0)
        for path in _newest_first(self._folder):
            if not path.name.endswith(_OLDER):
                found += self._lines(path)
        return sorted(found, key=lambda line: line.at)

    def _lines(self, path: Path) -> Iterator[LogLine]:
        pid = path.name.partition(".")[0]
        start = self._read.get(path.name, 0)
        try:
            with path.open("rb") as file:
                if file.seek(0, os.SEEK_END) < start:
                    start = 0  # it was started again
                file.seek(start)
                data = file.read(2 * MAX_BYTES)
        except OSError:
            return
        whole = data[: data.rfind(b"\n") + 1]
        self._read[path.name] = start + len(whole)
        for line in whole.splitlines():
            with suppress(ValueError):
                fields: Any = json.loads(line)
                if isinstance(fields, dict) and pid.isdigit():
                    yield LogLine(int(pid), cast("dict[str, Any]", fields))


def _newest_first(folder: Path) -> list[Path]:
    found: list[tuple[float, Path]] = []
    for path in folder.iterdir():
        with suppress(OSError):
            found.append((path.stat().st_mtime, path))
    return [path for _, path in sorted(found, reverse=True)]


def _prune(folder: Path) -> None:
    for path in _newest_first(folder)[KEPT_FILES - 1 :]:
        with suppress(OSError):
            path.unlink()
