"""The file that is about to be changed: all of its bytes, and the version a later write must still find."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.workspace import Files, FileVersion, OpenedFile, WorkspacePath

MAX_BYTES = 256 * 1024 * 1024
"""A change holds the file in memory twice."""
_HASHED_BESIDE_BYTES = 1024 * 1024
"""Above this size the hash is worked out while the caller goes on; it takes 0.06 s for 100 MB, or much longer."""


@dataclass(frozen=True)
class CurrentFile:
    """`data` is the whole content. Use `version` while the file is open."""

    data: bytes
    _file: OpenedFile
    _hashing: Future[FileVersion] | None

    @property
    def version(self) -> FileVersion:
        return self._file.version(self.data) if self._hashing is None else self._hashing.result()


@contextmanager
def open_current(files: Files, path: WorkspacePath, real_path: Path) -> Generator[CurrentFile]:
    """Read the file at `path`, whose lock is held under `real_path`.

    Raises `ToolError`: as `Files.open_file`; TOO_LARGE; STALE if a link on the way has been changed meanwhile.
    """
    with files.open_file(path) as file:
        if file.real_path != real_path:
            raise ToolError(ErrorCode.STALE, f"{path} leads to another file than a moment ago", "Call again.")
        if file.stat.st_size > MAX_BYTES:
            raise ToolError(
                ErrorCode.TOO_LARGE,
                f"{path} has {file.stat.st_size:,} bytes; files above {MAX_BYTES:,} bytes are not changed as a whole",
                "Change it with a program that works on streams (sed, awk), run by Bash.",
            )
        data = file.read()
        if len(data) < _HASHED_BESIDE_BYTES:
            yield CurrentFile(data, file, None)
            return
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="goat-hash") as beside:
            yield CurrentFile(data, file, beside.submit(file.version, data))
