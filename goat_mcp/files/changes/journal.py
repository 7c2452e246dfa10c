"""The journal: what tools change is written down, and the old bytes are kept, before the change takes effect.

A process killed at any moment leaves the whole old file or the whole new one, and a record that fits both: which of
them is there tells whether the change happened. The bytes of small contents and of records are on disk before the
file is replaced; that their names are too, after a loss of power, is up to the file system's order.
"""

from __future__ import annotations

import os
import stat
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from goat_mcp.files.changes.blobs import Blobs, WrongContent
from goat_mcp.files.changes.change import Author, Change, ChangeRecords, Content
from goat_mcp.files.workspace import FileVersion, Workspace, WorkspacePath, WrittenFile
from goat_mcp.files.workspace.beneath import Location
from goat_mcp.files.workspace.refusals import stale
from goat_mcp.state.directory import StateDirectory

MAX_RECORDS = 20_000


@dataclass(frozen=True, slots=True)
class JournalLimits:
    """`total_bytes` of old contents; 0 keeps nothing. Older changes than `days` are forgotten."""

    total_bytes: int = 1024 * 1024 * 1024
    days: int = 30


UNLIMITED = JournalLimits(total_bytes=sys.maxsize)
"""Of a journal that only adds: how much is kept is for a server to say, which knows the settings."""


@dataclass(frozen=True, slots=True)
class JournaledWrite:
    """The result of a write. `written` is None if the file was removed; `not_kept` as in `Change`."""

    written: WrittenFile | None
    change_id: str
    not_kept: str


class Journal:
    """Changes of the files below every workspace, kept for all of the user's processes in `changes/` of the state."""

    def __init__(
        self, state: StateDirectory, limits: JournalLimits | None = None, warn: Callable[[Path], None] = lambda _: None
    ) -> None:
        self.limits = limits or JournalLimits()
        self._state = state
        self._warn = warn
        self._kept_bytes = 0
        self._folders: tuple[ChangeRecords, Blobs] | None = None

    @property
    def records(self) -> ChangeRecords:
        return self._open()[0]

    @property
    def blobs(self) -> Blobs:
        return self._open()[1]

    def write(
        self,
        workspace: Workspace,
        path: WorkspacePath,
        data: bytes,
        *,
        expect: FileVersion | None,
        author: Author,
        undoes: str = "",
        new_mode: int | None = None,
    ) -> JournaledWrite:
        """`Workspace.write_file`, with the old bytes kept. Hold the file's lock. Blocking."""
        if not self.limits.total_bytes:
            return JournaledWrite(workspace.write_file(path, data, expect=expect, new_mode=new_mode), "", "")
        entry = _Entry(self, author, expect, len(data), undoes)
        with self._recorded(workspace, path, entry):
            written = workspace.write_file(path, data, expect=expect, before=entry, new_mode=new_mode)
        return JournaledWrite(written, entry.id, entry.not_kept)

    def remove(
        self, workspace: Workspace, path: WorkspacePath, *, expect: FileVersion, author: Author, undoes: str = ""
    ) -> JournaledWrite:
        """`Workspace.remove_file`, with the old bytes kept. Hold the file's lock. Blocking."""
        if not self.limits.total_bytes:
            workspace.remove_file(path, expect=expect)
            return JournaledWrite(None, "", "")
        entry = _Entry(self, author, expect, None, undoes)
        with self._recorded(workspace, path, entry):
            workspace.remove_file(path, expect=expect, before=entry)
        return JournaledWrite(None, entry.id, entry.not_kept)

    @contextmanager
    def _recorded(self, workspace: Workspace, path: WorkspacePath, entry: _Entry) -> Generator[None]:
        """Record the change that the block makes; if it fails, as if it had never been tried."""
        self.release(workspace, path)
        try:
            yield
        except BaseException:
            entry.take_back()
            self.release(workspace, path)
            raise
        entry.finalize()
        self._kept_bytes += entry.old_size
        if self._kept_bytes > self.limits.total_bytes // 4:
            self._kept_bytes = 0
            threading.Thread(target=self.prune, name="goat-journal", daemon=True).start()

    def release(self, workspace: Workspace, path: WorkspacePath) -> None:
        """A change that was cut short may have left the file with a second name of ours."""
        with suppress(Exception):  # whatever is wrong with the path, writing it says so
            found = workspace.stat(path)
            if found is not None and found.st_nlink > 1:
                self.blobs.release(found)

    def prune(self) -> None:
        """Forget what is too old or too much. Blocking; if the state directory cannot be used, nothing happens."""
        with suppress(OSError):
            kept: set[str] = set()
            total_bytes = 0
            oldest_s = time.time() - self.limits.days * 24 * 3600
            for number, change in enumerate(self.records.newest_first()):
                if change.before is not None and not change.not_kept and change.before.sha256 not in kept:
                    total_bytes += change.before.size
                if total_bytes > self.limits.total_bytes or number >= MAX_RECORDS or change.at_s < oldest_s:
                    self.records.remove(change.id)
                elif change.before is not None:
                    kept.add(change.before.sha256)
            self.records.clear_up()
            self.blobs.prune(kept)

    def _open(self) -> tuple[ChangeRecords, Blobs]:
        if self._folders is None:
            records = ChangeRecords(self._state.folder("changes", "records"), self._warn)
            self._folders = (records, Blobs(self._state.folder("changes", "blobs")))
        return self._folders


class _Entry:
    """A `BeforeChange`: one change on its way into the journal."""

    def __init__(
        self, journal: Journal, author: Author, expect: FileVersion | None, new_size: int | None, undoes: str
    ) -> None:
        self._journal = journal
        self._author = author
        self._expect = expect
        self._new_size = new_size
        self._undoes = undoes
        self.id = ""
        self.not_kept = ""
        self.old_size = 0

    def __call__(self, location: Location, old: os.stat_result | None, sha256: str, *, in_place: bool = False) -> None:
        self.not_kept = ""
        try:
            change = self._change(location, old, sha256)
            if change.before is not None and old is not None:
                change = replace(change, not_kept=self._keep(location, old, change.before, in_place=in_place))
            self.not_kept = change.not_kept
            self._journal.records.store(change)
        except OSError as problem:
            self.not_kept = (problem.strerror or str(problem)).lower()
        except WrongContent:
            raise stale(location.real, "changed since it was read") from None

    def _change(self, location: Location, old: os.stat_result | None, sha256: str) -> Change:
        self.id = self.id or self._journal.records.new_id()
        before = after = None
        if old is not None and self._expect is not None:
            before = Content(self._expect.sha256, old.st_size, stat.S_IMODE(old.st_mode))
        if self._new_size is not None:
            after = Content(sha256, self._new_size)
        real = location.real
        return Change(self.id, time.time(), self._author, real, location.root.real, before, after, self._undoes)

    def _keep(self, location: Location, old: os.stat_result, before: Content, *, in_place: bool) -> str:
        """Why the old bytes are not kept; empty if they are."""
        limit = self._journal.limits.total_bytes
        if before.size > limit:
            return f"its {before.size:,} bytes are more than files.journal_bytes, {limit:,}"
        try:
            self._journal.blobs.keep(location, old, before.sha256, in_place=in_place)
        except OSError as problem:
            return (problem.strerror or str(problem)).lower()
        self.old_size = before.size
        return ""

    def take_back(self) -> None:
        """The change did not happen."""
        if self.id:
            with suppress(OSError):
                self._journal.records.remove(self.id)

    def finalize(self) -> None:
        """The change happened."""
        if self._expect is not None and self.old_size:
            self._journal.blobs.finalize(self._expect.sha256)
