"""A record's lines in the order they were written, over all its files, while others go on writing."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from goat_mcp.calls.audit.chain import MAX_LINE_BYTES, fcntl
from goat_mcp.calls.audit.rotation import kept_files


@dataclass(frozen=True, slots=True)
class Line:
    """`text` is without its line end; `is_whole` says whether it had one. Counted from 1 in each file."""

    file: Path
    number: int
    text: bytes
    is_whole: bool = True

    @property
    def place(self) -> str:
        return f"{self.file.name}:{self.number}"


@dataclass(frozen=True)
class RecordFiles:
    """The files as they were at one moment: number (0 for the growing one), file and bytes to read."""

    files: tuple[tuple[int, BinaryIO, int], ...]
    path: Path

    def lines(self) -> Iterator[Line]:
        for _, file, size in self.files:
            number, left = 0, size
            while left > 0:
                # More than any line of ours: a changed file may hold one without an end.
                text = file.readline(min(left, 4 * MAX_LINE_BYTES))
                if not text:
                    break
                left -= len(text)
                number += 1
                yield Line(Path(os.fsdecode(file.name)), number, text.removesuffix(b"\n"), text.endswith(b"\n"))


@contextmanager
def record_files(path: Path) -> Generator[RecordFiles]:
    """Open all files of the record of calls at `path`. Raises `OSError` where there is none.

    Writers wait while the files are opened, and not while they are read.
    """
    with ExitStack() as stack:
        growing: BinaryIO | None = None
        try:
            growing = stack.enter_context(path.open("rb"))
        except FileNotFoundError:
            if not kept_files(path):
                raise
        if growing is not None and fcntl is not None:
            fcntl.flock(growing, fcntl.LOCK_SH)
        try:
            opened: list[tuple[int, BinaryIO, int]] = []
            for number, file in kept_files(path):
                kept = stack.enter_context(file.open("rb"))
                opened.append((number, kept, os.fstat(kept.fileno()).st_size))
            if growing is not None and not any(_same(growing, kept) for _, kept, _ in opened):
                opened.append((0, growing, os.fstat(growing.fileno()).st_size))
        finally:
            if growing is not None and fcntl is not None:
                fcntl.flock(growing, fcntl.LOCK_UN)
        yield RecordFiles(tuple(opened), path)


def _same(one: BinaryIO, other: BinaryIO) -> bool:
    """It was rotated just before we locked it."""
    return os.path.sameopenfile(one.fileno(), other.fileno())
