"""What a sandbox leaves in a workspace, and how it is removed: also after a crash (R-PROC-3, 6).

A name that must not be made inside is covered by an empty directory, for which the system makes one outside, too. It
is a directory and not a file because git lists no empty directories, and because `rmdir` can never remove anything
that somebody wrote. Other names in git directories cannot be covered, because git reads them: a new one is moved
afterwards to a directory of its own there, which git does not know. What git makes when a rebase or the like stops
halfway is moved back while the next command runs.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import secrets
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from pathlib import Path

from goat_mcp.commands.sandbox.git_directories import WatchedFolder, entries_of
from goat_mcp.commands.sandbox.no_follow import NoFollow
from goat_mcp.commands.sandbox.temporary_folders import SESSIONS, remove_stale_sessions
from goat_mcp.core import posix
from goat_mcp.files.workspace.protected import RESUMED, SET_ASIDE
from goat_mcp.state.file_lock import lock, try_lock

_MAX_SHOWN = 5


class Placeholders:
    """Makes notes in `folder`, a private one, and removes a placeholder when its last user is done.

    For any thread. Each process has a file of notes, which it keeps locked while it lives. All processes change notes
    and remove placeholders in turn, or one would remove what another has just begun to need.
    """

    def __init__(self, folder: Path, before_first: Callable[[], None] = lambda: None) -> None:
        self._folder = folder
        self._before_first = before_first
        self._users: Counter[Path] = Counter()
        self._watchers: Counter[Path] = Counter()
        self._watched: dict[Path, WatchedFolder] = {}
        """Each with what was known before all commands that run: the second of two may find what the first made."""
        self._lock = threading.Lock()
        self._notes = -1
        self._pending_reports: list[str] = []
        self._file = folder / f"{os.getpid()}-{secrets.token_hex(8)}.json"

    def acquire(self, covered: Sequence[Path], watched: Sequence[WatchedFolder]) -> tuple[Path, ...]:
        """Before a start: missing paths of `covered` will be made; in `watched` nothing may be new afterwards.

        Returns what of `covered` to release: all but the empty directories that somebody else made. Raises `OSError`.
        """
        if not covered and not watched:
            return ()
        with self._exclusive():
            if self._notes < 0:
                self._open()
            ours = self._ours_of(covered)
            self._users.update(ours)
            for one in watched:
                before = self._watched.get(one.path, one)
                self._watched[one.path] = WatchedFolder(one.path, before.known & one.known)
                self._watchers[one.path] += 1
            self._write()
            _restore_resumed(watched)
        return ours

    def release(self, taken: Sequence[Path], watched: Sequence[WatchedFolder]) -> tuple[str, ...]:
        """After the end: remove what nobody else uses. Reports what was set aside, also for dead processes."""
        if not taken and not watched:
            return ()
        with self._exclusive():
            self._users.subtract(taken)
            self._watchers.subtract(one.path for one in watched)
            unused = [path for path in taken if not self._users[path]]
            unwatched = [one.path for one in watched if not self._watchers[one.path] and one.path in self._watched]
            reports = _clear(
                set(unused) - self._used_by_others() if unused else (), [self._watched.pop(path) for path in unwatched]
            )
            self._users, self._watchers = +self._users, +self._watchers
            self._write()
            reports = (*self._pending_reports, *reports)
            self._pending_reports.clear()
        return reports

    def clean_up(self) -> tuple[str, ...]:
        """Remove what dead processes left. Returns reports on what was set aside."""
        if not any(self._folder.glob("*.json")):
            return ()
        with self._exclusive():
            return self._clean_up_others()

    @contextlib.contextmanager
    def _exclusive(self) -> Generator[None]:
        """No other thread or process changes anything meanwhile."""
        with self._lock:
            descriptor = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
            try:
                lock(descriptor)
                yield
            finally:
                os.close(descriptor)

    def _ours_of(self, covered: Sequence[Path]) -> tuple[Path, ...]:
        there = {path for path in covered if os.path.lexists(path)} - self._users.keys()
        if not there:
            return tuple(covered)
        self._pending_reports += self._clean_up_others()
        theirs = {path for path in there if os.path.lexists(path)} - self._used_by_others()
        return tuple(path for path in covered if path not in theirs)

    def _open(self) -> None:
        self._pending_reports += self._clean_up_others()
        self._before_first()
        self._notes = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        lock(self._notes)

    def _write(self) -> None:
        watched = {os.fsdecode(path): sorted(one.known) for path, one in self._watched.items()}
        text = json.dumps([[os.fsdecode(path) for path in self._users], watched])
        data = text.encode("utf-8", "surrogateescape")
        # Longer first, so that a crash between the two leaves what can still be read.
        posix.pwrite(self._notes, data + b"\n", 0)
        os.ftruncate(self._notes, len(data) + 1)

    def _clean_up_others(self) -> tuple[str, ...]:
        reports: list[str] = []
        others = self._used_by_others()
        for file, covered, watched in self._notes_of_others(alive=False):
            reports += _clear(set(covered) - others, watched, made_before=_ended_before(file))
            file.unlink(missing_ok=True)
        return tuple(reports)

    def _used_by_others(self) -> set[Path]:
        return {path for _, covered, _ in self._notes_of_others(alive=True) for path in covered}

    def _notes_of_others(self, *, alive: bool) -> Iterable[tuple[Path, list[Path], list[WatchedFolder]]]:
        for file in sorted(self._folder.glob("*.json")):
            if file == self._file:
                continue
            with contextlib.suppress(OSError), file.open("rb") as notes:
                is_alive = not try_lock(notes.fileno(), shared=True)
                if is_alive == alive:
                    yield (file, *_parsed(notes.readline()))


def _parsed(line: bytes) -> tuple[list[Path], list[WatchedFolder]]:
    """Notes torn by a crash count as empty: then an empty directory stays, which is harmless."""
    try:
        covered, watched = json.loads(line.decode("utf-8", "surrogateescape"))
        folders = [WatchedFolder(Path(path), frozenset(known)) for path, known in watched.items()]
        return [Path(os.fsdecode(path)) for path in covered], folders
    except (ValueError, TypeError, AttributeError):
        return [], []


def _ended_before(notes: Path) -> float:
    """When the commands of a dead process had ended, if known: at the latest with the system."""
    started_s = time.time() - posix.since_boot_s()
    with contextlib.suppress(OSError):
        if notes.stat().st_mtime < started_s:
            return started_s
    return math.inf


def _clear(
    covered: Iterable[Path], watched: Iterable[WatchedFolder], *, made_before: float = math.inf
) -> tuple[str, ...]:
    with NoFollow() as opener:
        for path in covered:
            with contextlib.suppress(OSError):  # not there, or somebody put something into it
                os.rmdir(path.name, dir_fd=opener.folder(path.parent))
    return tuple(line for one in watched for line in _set_aside(one, made_before))


def _set_aside(folder: WatchedFolder, made_before: float) -> Iterable[str]:
    """Move new names to where git does not look. Returns reports."""
    moved: list[str] = []
    for name in folder.new_names():
        try:
            if os.lstat(folder.path / name).st_ctime > made_before:
                continue
            with NoFollow() as opener:
                _move(opener, folder.path / name, _store(opener, folder.path), name.replace("/", "-"))
            moved.append(name)
        except OSError as problem:
            yield f"{folder.path / name} is new and git would obey it, but cannot be moved: {problem.strerror}"
    if moved:
        more = f" and {len(moved) - _MAX_SHOWN} more" if len(moved) > _MAX_SHOWN else ""
        stopped = ". The next sandboxed command can go on from there" if any(map(RESUMED.fullmatch, moved)) else ""
        yield (
            f"set aside {', '.join(str(folder.path / name) for name in moved[:_MAX_SHOWN])}{more}, which is new: git "
            f"outside the sandbox would obey it. It lies in {folder.path / SET_ASIDE}{stopped}"
        )


def _restore_resumed(watched: Iterable[WatchedFolder]) -> None:
    for one in watched:
        store = one.path / SET_ASIDE
        if not os.path.lexists(store):
            continue
        with contextlib.suppress(OSError), NoFollow() as opener:
            above, source = opener.folder(one.path), opener.folder(store)
            for name in (entry.name for entry in entries_of(store)):
                if RESUMED.fullmatch(name) and not os.path.lexists(one.path / name):
                    os.rename(name, name, src_dir_fd=source, dst_dir_fd=above)


def _store(opener: NoFollow, folder: Path) -> int:
    """The directory for what is set aside; a command may have replaced it."""
    above = opener.folder(folder)
    try:
        os.mkdir(SET_ASIDE, 0o700, dir_fd=above)
    except FileExistsError:
        with contextlib.suppress(OSError):  # it is a directory, as it should be
            os.unlink(SET_ASIDE, dir_fd=above)
            os.mkdir(SET_ASIDE, 0o700, dir_fd=above)
    return opener.folder(folder / SET_ASIDE)


def _move(opener: NoFollow, path: Path, store: int, name: str) -> None:
    """Raises `OSError`. Replaces what was set aside under that name before, which was a command's, too."""
    above = opener.folder(path.parent)
    try:
        os.rename(path.name, name, src_dir_fd=above, dst_dir_fd=store)
    except OSError:
        aside = f"{name}.{secrets.token_hex(4)}"
        os.rename(name, aside, src_dir_fd=store, dst_dir_fd=store)
        os.rename(path.name, name, src_dir_fd=above, dst_dir_fd=store)
        shutil.rmtree(aside, ignore_errors=True, dir_fd=store)
        with contextlib.suppress(OSError):
            os.unlink(aside, dir_fd=store)


def main(arguments: list[str]) -> None:
    """Started by `launcher` when a server is gone, however it ended: remove its placeholders and its session folders.

    `arguments`: the folder of the notes, in which the session folders are too.
    """
    Placeholders(Path(arguments[0])).clean_up()
    remove_stale_sessions(Path(arguments[0]) / SESSIONS)
