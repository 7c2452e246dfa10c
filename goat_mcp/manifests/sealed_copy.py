"""Directories of manifests that count as they were: a private copy is read and run in their place.

They are those of a trusted project, which count as they were trusted, and those that tools can write to, which count as
they were when that became known: otherwise a model could write what a declared tool runs. A copy, since nothing that
is looked at before something runs says what it will load while it runs (R-CONF-1).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.private_file import TEMP_PREFIX

FOLDER = "sealed_manifests"
MAX_FILES = 5_000
MAX_BYTES = 64 * 1024 * 1024
KEPT_S = 7 * 24 * 3600.0
_COMPILED = "__pycache__"


class Unsealable(Exception):
    """A directory that cannot be copied whole; the text says why."""


def is_within_reach(folder: Path, writable: Sequence[Path]) -> bool:
    """Whether something that `folder` holds lies where tools may write: below one of the directories or above it, also
    by way of a link somewhere in it."""
    reached = [place.resolve() for place in writable]
    return any(
        place.is_relative_to(other) or other.is_relative_to(place)
        for place in (folder.resolve(), *_linked_to(folder))
        for other in reached
    )


def sealed_copy(folder: Path, state: StateDirectory, trusted: Mapping[Path, bytes]) -> Path:
    """Where a copy of it lies that nobody else writes to. Of a directory among `trusted` it holds these bytes, else
    what is there now, links followed. Compiled Python is left out: it need not be what the source beside it says.

    Raises `Unsealable`.
    """
    contents = {path: data for path, data in trusted.items() if path.is_relative_to(folder)}
    files = {path: (data, 0o755 if os.access(path, os.X_OK) else 0o644) for path, data in contents.items()}
    try:
        files = files or dict(_files_of(folder))
        return _written(state, {path.relative_to(folder): file for path, file in files.items()})
    except OSError as problem:
        raise Unsealable(f"{problem.filename or folder}: {problem.strerror}") from None


def _linked_to(folder: Path) -> Iterator[Path]:
    for where, names, files in os.walk(folder):
        for name in (*names, *files):
            path = Path(where) / name
            if path.is_symlink():
                yield Path(os.path.realpath(path))  # also one that leads to itself


def _files_of(folder: Path) -> Iterator[tuple[Path, tuple[bytes, int]]]:
    count = size = 0
    seen: set[Path] = set()
    for where, names, files in os.walk(folder, followlinks=True):
        real = Path(where).resolve()
        if real in seen:
            names.clear()  # a link that leads back
            continue
        seen.add(real)
        names[:] = sorted(name for name in names if name != _COMPILED)
        for name in sorted(files):
            path = Path(where) / name
            if name.endswith(".pyc") or not path.is_file():
                continue
            data = path.read_bytes()
            count, size = count + 1, size + len(data)
            if count > MAX_FILES or size > MAX_BYTES:
                raise Unsealable(f"it holds more than {MAX_FILES} files, or {MAX_BYTES} bytes")
            yield path, (data, path.stat().st_mode & 0o755)


def _written(state: StateDirectory, files: Mapping[Path, tuple[bytes, int]]) -> Path:
    """A copy is named by its content, so that starts share it; it lies where no tool writes."""
    digest = hashlib.sha256()
    for path, (data, mode) in sorted(files.items()):
        digest.update(f"{path}\0{mode}\0{len(data)}\0".encode("utf-8", "surrogateescape") + data)
    parent = state.folder() / FOLDER
    parent.mkdir(mode=0o700, exist_ok=True)
    copy = parent / digest.hexdigest()[:32]
    if copy.is_dir():
        os.utime(copy)
    else:
        unfinished = parent / f"{TEMP_PREFIX}{os.getpid()}.{copy.name}"
        shutil.rmtree(unfinished, ignore_errors=True)
        for path, (data, mode) in files.items():
            place = unfinished / path
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            place.write_bytes(data)
            place.chmod(mode & 0o755 | 0o600)
        unfinished.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            unfinished.rename(copy)
        except OSError:
            if not copy.is_dir():  # another process was first
                raise
            shutil.rmtree(unfinished, ignore_errors=True)
    _forget_old(parent.iterdir())
    return copy


def _forget_old(copies: Iterable[Path]) -> None:
    for copy in copies:
        if copy.stat().st_mtime < time.time() - KEPT_S:
            shutil.rmtree(copy, ignore_errors=True)
