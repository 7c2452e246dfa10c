"""Read before write: whether a client may change a file, by what it has read of it with Read or a shell command.

Contract: tools.md, "Read state"; R-FILE-8. Recording reads of Read is the tool's business.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.workspace import FileVersion, Workspace
from goat_mcp.state.sessions import ReadLedger, ReadRecord

ReadBeforeWrite = Literal["strict", "relaxed", "off"]


@dataclass(frozen=True)
class ReadState:
    """One file as this client has last seen it. `path` is the path in the caller's words."""

    mode: ReadBeforeWrite
    path: str
    seen: ReadRecord | None

    def is_changed(self, version: FileVersion) -> bool:
        """The client has seen another content. Decided by content; by size and time if nothing was hashed."""
        if self.seen is None:
            return False
        if self.seen.sha256:
            return self.seen.sha256 != version.sha256
        return (self.seen.size, self.seen.mtime_ns) != (version.size, version.mtime_ns)

    def before_editing(self) -> None:
        """Before looking for anything: `strict` wants a read. Raises `ToolError(NOT_READ)`."""
        if self.mode == "strict":
            self._require_read()

    def before_applying(self, version: FileVersion, *, exact_and_unique: bool) -> None:
        """An edit that is not exact and unique needs a read, of this very content. Raises NOT_READ or STALE."""
        if not exact_and_unique:
            self.before_overwriting(version)

    def before_overwriting(self, version: FileVersion) -> None:
        """Content may only go after it has been seen. Raises NOT_READ or STALE."""
        if self.mode != "off" and version.size:
            self._require_read()
            self.require_current(version)

    def require_current(self, version: FileVersion) -> None:
        """Raises `ToolError(STALE)` if the client knows another content only."""
        if self.mode != "off" and self.is_changed(version):
            raise ToolError(
                ErrorCode.STALE,
                f"{self.path} has changed since it was read; nothing was written",
                "Read it again, then repeat the change on its present content.",
            )

    def _require_read(self) -> None:
        if self.seen is None:
            raise ToolError(
                ErrorCode.NOT_READ,
                f"{self.path} has not been read in this session; nothing was written",
                "Read it first (a part is enough), then call again.",
            )


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
class ReadFilesSnapshot:
    """How the files a session has read were just before a command ran."""

    identities: dict[str, _Identity | None]

    @classmethod
    def of(cls, ledger: ReadLedger) -> ReadFilesSnapshot:
        return cls({path: _identity(path) for path in ledger.paths()[-MAX_WATCHED:]})

    def changed(self) -> list[str]:
        """Those that are different now, or gone."""
        return [path for path, before in self.identities.items() if before is not None and _identity(path) != before]


def shown_file(words: Sequence[str]) -> ShownFile | None:
    """The file of a one-file `cat`, `head`, `tail`, `sed -n` or `nl`, which counts as a read. `words` are literal."""
    name = PurePosixPath(words[0]).name
    if name not in ("cat", "head", "tail", "sed", "nl"):
        return None
    options = [word for word in words[1:] if word.startswith("-") and len(word) > 1]
    rest = [word for word in words[1:] if word not in options]
    if name in ("head", "tail") and rest[:1] and options[-1:] in (["-n"], ["-c"]):
        del rest[0]
    elif name == "sed":
        if "-n" not in options or not set(options) <= {"-n", "-e", "-E", "-r"} or not rest[:1]:
            return None
        del rest[0]
    if len(rest) != 1 or "--help" in options or "--version" in options:
        return None
    return ShownFile(rest[0], name in ("cat", "nl"))


def record_as_read(shown: ShownFile, directory: Path, workspace: Workspace, ledger: ReadLedger) -> None:
    """Note the file as this session has seen it. Blocking."""
    try:
        with workspace.open_file(workspace.resolve(os.path.normpath(directory / shown.name))) as file:
            if file.stat.st_size > MAX_HASHED_BYTES:
                return
            version = file.version(file.read())
            seen = ReadRecord(version.sha256, version.size, version.mtime_ns, whole=shown.whole)
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
