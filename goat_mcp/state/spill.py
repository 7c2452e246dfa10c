"""Spill files: the whole of an output that was too long to show, in files that Read and Grep may open.

Contract: tools.md, "Results": state directory, 0600, 64 MiB each, pruned at 7 days or 1 GiB.
"""

from __future__ import annotations

import os
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from goat_mcp.state.directory import StateDirectory

MAX_FILE_BYTES = 64 * 1024 * 1024
MAX_TOTAL_BYTES = 1024 * 1024 * 1024
MAX_AGE_S = 7 * 24 * 3600


@dataclass(frozen=True)
class SpillFiles:
    """Makes and prunes spill files. Those of one `scope` (a workspace) are not readable from another."""

    state: StateDirectory
    scope: str = "local"

    @property
    def folder(self) -> Path:
        return self.state.folder("spill", self.scope)

    def create(self, stem: str, suffix: str = ".txt") -> tuple[Path, int]:
        """A new empty file, 0600, open for writing. Returns its path and descriptor; the caller closes it."""
        path = self.folder / f"{stem}-{secrets.token_hex(8)}{suffix}"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        return path, descriptor

    def write(self, stem: str, text: str) -> Path:
        """Store `text`, cut at 64 MiB. Returns the path."""
        path, descriptor = self.create(stem)
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode("utf-8", "replace")[:MAX_FILE_BYTES])
        return path

    def prune(self) -> int:
        """Delete files of all scopes older than 7 days, then the oldest past 1 GiB. Returns how many went."""
        files = [path for scope in self.state.folder("spill").iterdir() if scope.is_dir() for path in scope.iterdir()]
        by_age: list[tuple[float, int, Path]] = []
        for path in files:
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
