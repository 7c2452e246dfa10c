"""A file of JSON lines that several processes append to. Each line has its number and the hash of the line before.

`audit.jsonl` grows; full files before it are `audit.000001.jsonl` and so on. What the lines say is not known here.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
import threading
import time
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from goat_mcp.core import platform, posix
from goat_mcp.state.file_lock import try_lock, unlock
from goat_mcp.state.own_file import open_own, replace_own


def rotated_files(path: Path) -> list[tuple[int, Path]]:
    """The finished files beside `path` with their numbers, oldest first."""
    pattern = re.compile(rf"{re.escape(path.stem)}\.(\d{{6,12}}){re.escape(path.suffix)}")
    try:
        found = [(match, file) for file in path.parent.iterdir() if (match := pattern.fullmatch(file.name))]
    except FileNotFoundError:
        return []
    return sorted((int(match.group(1)), file) for match, file in found)


def rotated_name(path: Path, number: int) -> Path:
    return path.with_name(f"{path.stem}.{number:06d}{path.suffix}")


def next_number(path: Path) -> int:
    """The number that the growing file will be kept under."""
    kept = rotated_files(path)
    return kept[-1][0] + 1 if kept else 1


NO_LINE = "0" * 64
"""`prev` of the very first line."""
MAX_LINE_BYTES = 64 * 1024
LOCK_WAIT_S = 1.0
"""Each append takes some 50 us; a process that holds the lock longer is stopped. Waited for in a thread only."""
_LOCK_PAUSE_S = 0.0005
_COMPACT = json.JSONEncoder(separators=(",", ":"))
_OTHERS = 0o077
_OTHERS_WRITE = 0o022


class Unsafe(OSError):
    """The file or its folder is not safe for a record."""


class ChainFile:
    """Appends lines under a lock on the file itself, so that several writers make one chain. Any thread may append.

    The end of the file (number, hash, size) is remembered, and read again only if another process has written.
    """

    def __init__(self, path: Path, *, max_bytes: int, kept: int) -> None:
        self.path = path
        self._looked_at = str(path)
        self._max_bytes = max_bytes
        self._kept = kept
        self._mutex = threading.RLock()
        self._held: int | None = None
        """The descriptor that stays locked after an append. Nobody else writes or renames the file meanwhile."""
        self._descriptor: int | None = None
        self._inode = 0
        self._facts: os.stat_result | None = None
        """Of the file, as it was when it was locked; None once we have written."""
        self._end: tuple[int, int] | None = None
        """Inode and size of the file when we last wrote."""
        self._seq = 0
        self._prev = NO_LINE
        self._lost = 0

    @property
    def head(self) -> str:
        """`NUMBER:HASH` of the last line that this process knows of; empty before its first."""
        with self._mutex:
            return f"{self._seq}:{self._prev}" if self._seq else ""

    def try_hold(self) -> bool:
        """Lock the file if it is free; appends do not wait then until `release`."""
        if not self._mutex.acquire(blocking=False):
            return False
        try:
            self._held = self._lock(wait_s=0)
        except OSError:  # busy, or `append` finds out
            self._mutex.release()
            return False
        return True

    def release(self) -> None:
        self._held = None
        if self._descriptor is not None:
            unlock(self._descriptor)
        self._mutex.release()

    def append(self, fields: Mapping[str, Any]) -> None:
        """Write one line, whole or not at all. Raises `OSError`; a later line says how many were lost."""
        with self._mutex:
            try:
                if self._held is not None:
                    self._append_to(self._held, fields)
                    return
                descriptor = self._lock()
                try:
                    self._append_to(descriptor, fields)
                finally:
                    self._unlock()
            except OSError:
                self._lost += 1
                self._end = self._facts = None  # what is there now has to be looked at again
                raise

    def check(self) -> None:
        """Raises `OSError` if nothing could be appended."""
        with self._mutex:
            self._lock()
            self._unlock()

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = self._held = None

    def _append_to(self, descriptor: int, fields: Mapping[str, Any]) -> None:
        facts = self._facts or os.fstat(descriptor)
        if self._end != (facts.st_ino, facts.st_size):
            self._catch_up(descriptor, facts)
        if self._lost:
            self._write(descriptor, {"event": "gap", "reason": "lost", "lost": self._lost})
            self._lost = 0
        line = self._line(fields)
        if self._end is not None and self._end[1] > 0 and self._end[1] + len(line) > self._max_bytes:
            descriptor = self._rotate()
            line = self._line(fields)
        self._write_line(descriptor, line)

    def _lock(self, wait_s: float | None = None) -> int:
        """The file's descriptor, locked, and really the one the path names: another process may have rotated it."""
        deadline_s = time.monotonic() + (LOCK_WAIT_S if wait_s is None else wait_s)
        while True:
            descriptor = self._open() if self._descriptor is None else self._descriptor
            if not try_lock(descriptor):
                if time.monotonic() >= deadline_s:
                    raise OSError(errno.EBUSY, "another process holds the file", str(self.path))
                time.sleep(_LOCK_PAUSE_S)
                continue
            try:
                self._facts = os.lstat(self._looked_at)  # each call looks: a `Path` takes longer
                if self._facts.st_ino == self._inode:
                    return descriptor
            except FileNotFoundError:
                pass
            self.close()

    def _unlock(self) -> None:
        if self._descriptor is not None and self._descriptor != self._held:
            unlock(self._descriptor)

    def _open(self) -> int:
        _check_folder(self.path.parent)
        # Reading is for the last line, which others may have written.
        descriptor = open_own(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | posix.O_NONBLOCK)
        try:
            _check_file(descriptor, self.path)
        except OSError:
            os.close(descriptor)
            raise
        self._descriptor, self._inode = descriptor, os.fstat(descriptor).st_ino
        return descriptor

    def _catch_up(self, descriptor: int, facts: os.stat_result) -> None:
        """Find out what the next line follows, and mark what is not as its writers left it."""
        known_seq, known_prev = self._seq, self._prev
        self._end = (facts.st_ino, facts.st_size)
        if facts.st_size == 0:
            kept = rotated_files(self.path)[-self._kept :]
            self._seq, self._prev, _ = _end_of_file(kept[-1][1]) if kept else (0, NO_LINE, 0)
            if kept:
                self._write(descriptor, {"event": "rotated", "file": kept[-1][0] + 1, "oldest": kept[0][0]})
        else:
            self._seq, self._prev, torn_bytes = _last_line(descriptor, facts.st_size)
            if torn_bytes:
                self._write(descriptor, {"event": "gap", "reason": "torn", "torn_bytes": torn_bytes}, before=b"\n")
        if self._seq < known_seq:
            # They were there when this process wrote last.
            self._write(descriptor, {"event": "gap", "reason": "cut", "cut_seq": known_seq, "cut_hash": known_prev})

    def _rotate(self) -> int:
        """Keep the full file under its number and begin the next one, which carries the chain on."""
        number = next_number(self.path)
        replace_own(self.path, rotated_name(self.path, number))
        self.close()
        descriptor = self._lock()
        self._catch_up(descriptor, os.fstat(descriptor))
        for _, surplus in rotated_files(self.path)[: -self._kept]:
            surplus.unlink(missing_ok=True)
        return descriptor

    def _line(self, fields: Mapping[str, Any]) -> bytes:
        record = {"ts": _now(), "seq": self._seq + 1, "prev": self._prev, **fields}
        return _COMPACT.encode(record).encode() + b"\n"

    def _write(self, descriptor: int, fields: Mapping[str, Any], *, before: bytes = b"") -> None:
        self._write_line(descriptor, self._line({**fields, "pid": os.getpid()}), before=before)

    def _write_line(self, descriptor: int, line: bytes, *, before: bytes = b"") -> None:
        if len(line) > MAX_LINE_BYTES:
            raise OSError(errno.EMSGSIZE, f"a line of {len(line)} bytes", str(self.path))
        assert self._end is not None
        inode, size = self._end
        written = os.write(descriptor, before + line)
        if written != len(before + line):
            # The disk is full. Half a line would be taken for a torn one.
            os.ftruncate(descriptor, size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
        self._end, self._facts = (inode, size + written), None
        self._seq += 1
        self._prev = hash_of(line[:-1])


def hash_of(line: bytes) -> str:
    """What the next line's `prev` says of this one, which is without its line end."""
    return hashlib.sha256(line).hexdigest()


def _now() -> str:
    now_s = time.time()
    return f"{_to_the_second(int(now_s))}.{int(now_s * 1000) % 1000:03d}Z"


@lru_cache(maxsize=1)
def _to_the_second(now_s: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now_s))


def _end_of_file(file: Path) -> tuple[int, str, int]:
    descriptor = open_own(file, os.O_RDONLY)
    try:
        return _last_line(descriptor, os.fstat(descriptor).st_size)
    finally:
        os.close(descriptor)


def _last_line(descriptor: int, size: int) -> tuple[int, str, int]:
    """Number and hash of what the next line follows, and the length of a line that was not written whole."""
    start = max(0, size - 3 * MAX_LINE_BYTES)
    lines = posix.pread(descriptor, size - start, start).split(b"\n")
    torn = lines.pop()
    seq = next((seq for line in reversed(lines) if (seq := _seq_of(line)) is not None), 0)
    if torn:
        return seq, hash_of(torn), len(torn)
    return seq, hash_of(lines[-1]), 0


def _seq_of(line: bytes) -> int | None:
    try:
        record: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    seq = cast("dict[str, Any]", record).get("seq") if isinstance(record, dict) else None
    return seq if isinstance(seq, int) and not isinstance(seq, bool) and seq >= 0 else None


def _check_folder(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if platform.HAS_FILE_MODES and folder.stat().st_mode & _OTHERS_WRITE:
        raise Unsafe(errno.EPERM, "others can write in its folder", str(folder))


def _check_file(descriptor: int, path: Path) -> None:
    facts = os.fstat(descriptor)
    if not stat.S_ISREG(facts.st_mode):
        raise Unsafe(errno.EPERM, "not a regular file", str(path))
    if facts.st_nlink > 1:
        raise Unsafe(errno.EPERM, "it has a second name (a hard link)", str(path))
    if platform.HAS_FILE_MODES:
        if facts.st_uid != posix.geteuid():
            raise Unsafe(errno.EPERM, "it belongs to another user", str(path))
        if facts.st_mode & _OTHERS:
            posix.fchmod(descriptor, 0o600)
