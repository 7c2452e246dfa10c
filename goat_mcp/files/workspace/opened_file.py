"""What opening gives: a file or directory held by its descriptor, and the version of a file's content."""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from goat_mcp.core import platform
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.workspace.directory import Directory

MAX_WHOLE_BYTES = 1024 * 1024 * 1024
"""`OpenedFile.read` refuses more than this: it would all be in memory."""
SETTLED_NS = 2_000_000_000
"""A file changed less than this ago may change again without its times showing it (FAT counts in 2 s)."""
FINELY_SETTLED_NS = 50_000_000
"""The same if times have digits below the millisecond: such file systems go by the kernel's tick, 10 ms at most."""
_HASH_CHUNK_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """Equal identities mean unchanged content, without reading it again."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int

    @classmethod
    def of(cls, found: os.stat_result) -> FileIdentity:
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)

    @classmethod
    def settled(cls, found: os.stat_result, read_from_ns: int) -> FileIdentity | None:
        """None for a file changed so shortly before it was read that a change since could have left its times alone,
        and where times cannot show a change at all."""
        if not platform.HAS_CHANGE_TIMES:
            return None
        # the change time only: anybody can set the other one, to any digits
        wait_ns = FINELY_SETTLED_NS if found.st_ctime_ns % 1_000_000 else SETTLED_NS
        if max(found.st_mtime_ns, found.st_ctime_ns) + wait_ns > read_from_ns:
            return None
        return cls.of(found)


@dataclass(frozen=True, slots=True)
class FileVersion:
    """Content as it was seen: what counts is `sha256`; `identity` only saves computing it again."""

    sha256: str
    size: int
    mtime_ns: int
    identity: FileIdentity | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class AnyVersion:
    """Write whatever is there, or nothing."""


@dataclass(frozen=True)
class OpenedFile:
    """A regular file, open for reading."""

    fd: int
    stat: os.stat_result
    real_path: Path
    opened_at_ns: int = field(default_factory=time.time_ns)

    def read(self) -> bytes:
        """The whole content. Raises `ToolError(TOO_LARGE)` over 1 GiB."""
        if self.stat.st_size > MAX_WHOLE_BYTES:
            raise ToolError(
                ErrorCode.TOO_LARGE,
                f"{self.real_path} has {self.stat.st_size:,} bytes; at most {MAX_WHOLE_BYTES:,} are read at once",
                "Read a part of it with offset and limit.",
            )
        os.lseek(self.fd, 0, os.SEEK_SET)
        with open(self.fd, "rb", buffering=0, closefd=False) as file:
            return file.readall()

    def version(self, data: bytes) -> FileVersion:
        """The version whose content is `data`, just read from this file."""
        now = os.fstat(self.fd)
        unchanged = FileIdentity.of(now) == FileIdentity.of(self.stat) and len(data) == now.st_size
        identity = FileIdentity.settled(now, self.opened_at_ns) if unchanged else None
        return FileVersion(hashlib.sha256(data).hexdigest(), len(data), now.st_mtime_ns, identity)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.fd)


@dataclass(frozen=True)
class OpenedDirectory:
    """A directory that may be listed."""

    directory: Directory
    stat: os.stat_result
    real_path: Path

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.directory.close()


def hash_of(fd: int) -> str:
    """SHA-256 of all an open file holds, with flat memory."""
    digest = hashlib.sha256()
    buffer = bytearray(_HASH_CHUNK_BYTES)
    view = memoryview(buffer)
    os.lseek(fd, 0, os.SEEK_SET)
    with open(fd, "rb", buffering=0, closefd=False) as file:
        while count := file.readinto(buffer):
            digest.update(view[:count])
    return digest.hexdigest()
