"""Spill files: the whole of an output that was too long to show, in files that Read and Grep may open.

Each principal has a folder of its own, and the files of others are not there for it (SPL-1, R-HTTP-3).
Contract: tools.md, "Results": state directory, 0600, 64 MiB each, pruned at 7 days or 1 GiB.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import anyio
import anyio.to_thread

from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.own_file import open_own

MAX_FILE_BYTES = 64 * 1024 * 1024
MAX_TOTAL_BYTES = 1024 * 1024 * 1024
MAX_AGE_S = 7 * 24 * 3600
PRUNE_EVERY_S = 900.0
_STEM_CHARS = 60
_NOT_IN_STEM = re.compile(r"[^A-Za-z0-9_-]+")


def _principal() -> ContextVar[str]:
    return ContextVar("principal", default="local")


@dataclass(frozen=True)
class SpillFiles:
    """Makes and prunes spill files. Those of one `scope` (a workspace) are not readable from another.

    Whose call is running is a context variable: the door to files (`Workspace`) is shared by all calls and must know,
    also in the threads that search.
    """

    state: StateDirectory
    scope: str = "local"
    _caller: ContextVar[str] = field(default_factory=_principal, compare=False, repr=False)

    @property
    def root(self) -> Path:
        """What holds the folders of all principals; a reader is let into its own only (`is_open`)."""
        return self.state.folder("spill", self.scope)

    @property
    def folder(self) -> Path:
        """The folder of the principal whose call is running."""
        owner = hashlib.sha256(self._caller.get().encode("utf-8", "surrogatepass")).hexdigest()[:16]
        return self.state.folder("spill", self.scope, owner)

    @property
    def caller(self) -> str:
        """The principal whose call is running; that of the process itself outside of calls."""
        return self._caller.get()

    def used_by(self, principal: str) -> AbstractContextManager[None]:
        """Until the block ends, in it and in what it starts, the caller is this principal."""
        return _UsedBy(self._caller, principal)

    def is_open(self, path: Path) -> bool:
        """Whether the present caller may see a real path below `root`: one in its own folder."""
        return path.is_relative_to(self.folder.resolve())

    def create(self, stem: str, suffix: str = ".txt") -> tuple[Path, int]:
        """A new empty file, 0600, open for writing. Returns its path and descriptor; the caller closes it.

        `stem` may be anything, also a name that an upstream has chosen.
        """
        plain = _NOT_IN_STEM.sub("_", stem)[:_STEM_CHARS]
        path = self.folder / f"{plain}-{secrets.token_hex(8)}{suffix}"
        descriptor = open_own(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        return path, descriptor

    def write(self, stem: str, text: str, suffix: str = ".txt") -> Path:
        """Store `text`, cut at 64 MiB. Returns the path. Raises `OSError`, and then leaves no file."""
        path, descriptor = self.create(stem, suffix)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(text.encode("utf-8", "replace")[:MAX_FILE_BYTES])
        except OSError:
            with suppress(OSError):
                path.unlink()
            raise
        return path

    def prune(self) -> int:
        """Delete files of all scopes older than 7 days, then the oldest past 1 GiB. Returns how many went."""
        by_age: list[tuple[float, int, Path]] = []
        for path in _files_below(self.state.folder("spill"), depth=2):
            with suppress(OSError):  # another process prunes too
                found = path.stat()
                by_age.append((found.st_mtime, found.st_size, path))
        gone = total = 0
        for modified_s, size, path in sorted(by_age, reverse=True):
            total += size
            if total > MAX_TOTAL_BYTES or time.time() - modified_s > MAX_AGE_S:
                with suppress(OSError):
                    path.unlink()
                    gone += 1
        return gone

    async def keep_pruned(self) -> None:
        """`prune` now and every quarter of an hour, until cancelled."""
        while True:
            await anyio.to_thread.run_sync(self.prune, abandon_on_cancel=True)
            await anyio.sleep(PRUNE_EVERY_S)


class _UsedBy:
    """One call's time."""

    # Written out: a generator as a context costs three times as much, and every call has one of these.
    __slots__ = ("_before", "_caller", "_principal")

    def __init__(self, caller: ContextVar[str], principal: str) -> None:
        self._caller = caller
        self._principal = principal

    def __enter__(self) -> None:
        self._before: Token[str] = self._caller.set(self._principal)

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        self._caller.reset(self._before)


def _files_below(folder: Path, *, depth: int) -> Iterator[Path]:
    for path in folder.iterdir():
        if not path.is_dir():
            yield path
        elif depth:
            yield from _files_below(path, depth=depth - 1)
