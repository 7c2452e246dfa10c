"""What a shell command means for the read state: files it showed count as read, files it changed are named."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from goat_mcp.core.errors import ToolError
from goat_mcp.files.workspace import Workspace
from goat_mcp.processes.script_words import only_command
from goat_mcp.state.sessions import FileSeen, ReadLedger

MAX_WATCHED = 300
"""Files looked at before and after a command, newest reads first; 300 cost about a millisecond."""
MAX_HASHED_BYTES = 16 * 1024 * 1024

_Identity = tuple[int, int, int]


@dataclass(frozen=True)
class ShownFile:
    """A file that a command printed; `whole` says whether all of it."""

    name: str
    whole: bool


@dataclass(frozen=True)
class ReadFilesBefore:
    """How the files a session has read were just before a command ran."""

    identities: dict[str, _Identity | None]

    @classmethod
    def of(cls, ledger: ReadLedger) -> ReadFilesBefore:
        return cls({path: _identity(path) for path in ledger.paths()[-MAX_WATCHED:]})

    def changed(self) -> list[str]:
        """Those that are different now, or gone."""
        return [path for path, before in self.identities.items() if before is not None and _identity(path) != before]


def shown_file(script: str) -> ShownFile | None:
    """The file of a plain one-file `cat`, `head`, `tail`, `sed -n` or `nl`, which counts as a read of it."""
    command = only_command(script)
    if command is None or command.name not in ("cat", "head", "tail", "sed", "nl"):
        return None
    options = [word for word in command.words[1:] if word.startswith("-") and len(word) > 1]
    rest = [word for word in command.words[1:] if word not in options]
    if command.name in ("head", "tail") and rest[:1] and options[-1:] in (["-n"], ["-c"]):
        del rest[0]
    elif command.name == "sed":
        if "-n" not in options or not set(options) <= {"-n", "-e", "-E", "-r"} or not rest[:1]:
            return None
        del rest[0]
    if len(rest) != 1 or "--help" in options or "--version" in options:
        return None
    return ShownFile(rest[0], command.name in ("cat", "nl"))


def record_as_read(shown: ShownFile, directory: Path, workspace: Workspace, ledger: ReadLedger) -> None:
    """Note the file as this session has seen it. Blocking."""
    try:
        with workspace.open_file(workspace.resolve(os.path.normpath(directory / shown.name))) as file:
            if file.stat.st_size > MAX_HASHED_BYTES:
                return
            version = file.version(file.read())
            seen = FileSeen(version.sha256, version.size, version.mtime_ns, whole=shown.whole)
            ledger.record(str(file.real_path), seen)
    except (ToolError, OSError):
        # The command could read it, we may not: then it just does not count.
        return


def _identity(path: str) -> _Identity | None:
    try:
        found = os.stat(path)  # noqa: PTH116  # hundreds of these before and after each command
    except OSError:
        return None
    return (found.st_ino, found.st_size, found.st_mtime_ns)
