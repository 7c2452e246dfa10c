"""The traces a sandbox leaves in a workspace, and how they go: also after a crash (R-PROC-3, 6).

A name that must not be made inside is covered by an empty directory, for which the system makes one outside, too. It
is a directory and not a file because git lists no empty directories, and because `rmdir` can never remove anything
that somebody wrote. Other names cannot be covered, because git reads them: they are looked for afterwards.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from pathlib import Path

from goat_mcp.sandbox.no_follow import NoFollow

SET_ASIDE = ".set-aside-by-goat-mcp"


class Placeholders:
    """Notes what is about to be made in `folder`, a private one, and removes it when the last user is done.

    For any thread. Each process has a file of notes that it keeps locked while it lives; all of them change notes and
    remove placeholders one after the other, or one would remove what another has just begun to need.
    """

    def __init__(self, folder: Path, before_first: Callable[[], None] = lambda: None) -> None:
        self._folder = folder
        self._before_first = before_first
        self._users: Counter[Path] = Counter()
        self._watchers: Counter[Path] = Counter()
        self._lock = threading.Lock()
        self._notes = -1
        self._file = folder / f"{os.getpid()}-{secrets.token_hex(8)}.json"

    def take(self, covered: Sequence[Path], watched: Sequence[Path]) -> tuple[Path, ...]:
        """Before a start: `covered` will be made where it is not there, `watched` must not be there afterwards.

        Returns what of `covered` is to be given back: all but the empty directories that somebody else has made.
        Raises `OSError`.
        """
        if not covered and not watched:
            return ()
        with self._alone():
            if self._notes < 0:
                self._open()
            ours = self._not_of_the_user(covered)
            self._users.update(ours)
            self._watchers.update(watched)
            self._write()
        return ours

    def give_back(self, taken: Sequence[Path], watched: Sequence[Path]) -> tuple[str, ...]:
        """After the end: remove what nobody else uses, and say what had to be set aside."""
        if not taken and not watched:
            return ()
        with self._alone():
            self._users.subtract(taken)
            self._watchers.subtract(watched)
            unused = [path for path in taken if not self._users[path]]
            unwatched = [path for path in watched if not self._watchers[path]]
            said = _clear(set(unused) - self._used_by_others() if unused else (), unwatched)
            self._users, self._watchers = +self._users, +self._watchers
            self._write()
        return said

    def clear_up(self) -> tuple[str, ...]:
        """Remove what processes that are no more have left."""
        if not any(self._folder.glob("*.json")):
            return ()
        with self._alone():
            return self._clear_up()

    @contextlib.contextmanager
    def _alone(self) -> Generator[None]:
        """No other thread and no other process is at it meanwhile."""
        import fcntl

        with self._lock:
            lock = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield
            finally:
                os.close(lock)

    def _not_of_the_user(self, covered: Sequence[Path]) -> tuple[Path, ...]:
        there = {path for path in covered if os.path.lexists(path)} - self._users.keys()
        if not there:
            return tuple(covered)
        self._clear_up()
        theirs = {path for path in there if os.path.lexists(path)} - self._used_by_others()
        return tuple(path for path in covered if path not in theirs)

    def _open(self) -> None:
        import fcntl

        self._clear_up()
        self._before_first()
        self._notes = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._notes, fcntl.LOCK_EX)

    def _write(self) -> None:
        text = json.dumps([[os.fsdecode(path) for path in paths] for paths in (self._users, self._watchers)])
        data = text.encode("utf-8", "surrogateescape")
        # Longer first, so that a crash between the two leaves what can still be read.
        os.pwrite(self._notes, data + b"\n", 0)
        os.ftruncate(self._notes, len(data) + 1)

    def _clear_up(self) -> tuple[str, ...]:
        said: list[str] = []
        others = self._used_by_others()
        for file, covered, watched in self._read_others(alive=False):
            said += _clear(set(covered) - others, watched)
            file.unlink(missing_ok=True)
        return tuple(said)

    def _used_by_others(self) -> set[Path]:
        return {path for _, covered, _ in self._read_others(alive=True) for path in covered}

    def _read_others(self, *, alive: bool) -> Iterable[tuple[Path, list[Path], list[Path]]]:
        import fcntl

        for file in sorted(self._folder.glob("*.json")):
            if file == self._file:
                continue
            with contextlib.suppress(OSError), file.open("rb") as notes:
                try:
                    fcntl.flock(notes, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    is_alive = True
                else:
                    is_alive = False
                if is_alive == alive:
                    yield (file, *_parsed(notes.readline()))


def _parsed(line: bytes) -> tuple[list[Path], list[Path]]:
    """Notes that a crash has torn name nothing: then an empty directory stays, which harms nobody."""
    try:
        covered, watched = json.loads(line.decode("utf-8", "surrogateescape"))
        return [Path(os.fsdecode(path)) for path in covered], [Path(os.fsdecode(path)) for path in watched]
    except (ValueError, TypeError):
        return [], []


def _clear(covered: Iterable[Path], watched: Iterable[Path]) -> tuple[str, ...]:
    said: list[str] = []
    with NoFollow() as opener:
        for path in covered:
            with contextlib.suppress(OSError):  # not there, or somebody put something into it
                os.rmdir(path.name, dir_fd=opener.folder(path.parent))
        for path in watched:
            with contextlib.suppress(OSError):
                folder = opener.folder(path.parent)
                os.rename(path.name, path.name + SET_ASIDE, src_dir_fd=folder, dst_dir_fd=folder)
                said.append(f"set aside {path}, which was new: git would obey what it names")
    return tuple(said)
