"""A file of the user's own that we edit: read whole, backed up, and replaced in one step if nobody was faster."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from goat_mcp.core import posix
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.file_lock import exclusive
from goat_mcp.state.private_file import new_file

MAX_BYTES = 32 * 1024 * 1024
"""Some hosts keep more than servers in their file."""
_BACKUP = ".bak"
_WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True)
class Change:
    """One file, before and after. `after` is the same if nothing changes."""

    path: Path
    before: bytes | None
    after: bytes | None

    @property
    def is_one(self) -> bool:
        return self.before != self.after


@contextmanager
def edit_alone() -> Generator[None]:
    """Read, change and write files of the user's own while no other command of ours does: of two changes at a time
    none is lost."""
    with ExitStack() as stack:
        with suppress(OSError):  # a state directory that cannot be written; a change of the file is still noticed
            stack.enter_context(exclusive(StateDirectory.default().folder() / "edits.lock"))
        yield


def text_of(path: Path) -> str:
    """What the file holds; empty if there is none. Raises `ToolError`."""
    try:
        return (read_bytes(path) or b"").decode("utf-8")
    except UnicodeDecodeError:
        raise ToolError(ErrorCode.CONFIG, f"{path}: is not UTF-8 text", "Fix the file first.") from None


def change_of(path: Path, was: str, text: str) -> Change:
    """The file with `text` in place of what it `was`. Raises `ToolError(STALE)` if it is something else by now."""
    before = read_bytes(path)
    if (before or b"") != was.encode():
        raise ToolError(ErrorCode.STALE, f"{path} was changed meanwhile", "Nothing was changed. Try again.")
    return Change(path, before, before if before is None and not text else text.encode())


def write_change(change: Change) -> None:
    """Write it, with what was there before beside it. Only the user can read either. Raises `ToolError`."""
    if not change.is_one:
        return
    folder = change.path.parent
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as problem:
        why = problem.strerror or problem
        raise ToolError(ErrorCode.IO, f"{folder} cannot be made: {why}", "Nothing was changed.") from None
    if change.before is not None:
        backup = backup_of(change.path)
        replace_bytes(backup, change.before, was=read_bytes(backup), private=True)
    replace_bytes(change.path, change.after, was=change.before, private=True)


def backup_of(path: Path) -> Path:
    """Where the content before the last change is kept."""
    real = path.resolve()
    return real.with_name(real.name + _BACKUP)


def read_bytes(path: Path) -> bytes | None:
    """What a file holds; None if there is none. Raises `ToolError(IO)`."""
    try:
        # A pipe that nobody writes to must not hold us up.
        descriptor = os.open(path, os.O_RDONLY | posix.O_NONBLOCK | posix.O_BINARY)
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise _unusable(path, problem.strerror or str(problem)) from None
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise _unusable(path, "is not a file")
    with os.fdopen(descriptor, "rb") as file:
        if found.st_size > MAX_BYTES:
            raise _unusable(path, f"holds more than {MAX_BYTES // 1024 // 1024} MiB")
        return file.read(MAX_BYTES + 1)


def replace_bytes(path: Path, data: bytes | None, *, was: bytes | None, private: bool = False) -> None:
    """Make `data` all that the file holds, in one step; None: no file any more. Links, its rights and its owner stay.

    `private`: nobody else may read it from now on, as with a file that was not there. Raises `ToolError`, with STALE
    where it no longer holds what it `was`.
    """
    real = path.resolve()
    try:
        real.parent.mkdir(parents=True, exist_ok=True)
        if data is None:
            _check_unchanged(path, was)
            real.unlink(missing_ok=True)
            return
        mode, owner = 0o600, None
        with contextlib.suppress(FileNotFoundError):
            found = real.stat()
            if not found.st_mode & _WRITABLE:
                raise _unusable(path, "is write-protected")
            mode = stat.S_IMODE(found.st_mode) & (0o700 if private else 0o7777)
            owner = found.st_uid, found.st_gid
        temp = real.with_name(f".{real.name}.goat-{secrets.token_hex(4)}")
        with new_file(temp, data):
            if owner is not None and owner[0] != temp.stat().st_uid:
                posix.chown(temp, *owner)  # root may; a file of anybody else's is refused
            if stat.S_IMODE(temp.stat().st_mode) != mode and owner is not None:
                temp.chmod(mode)  # on a drive of Windows in WSL it is the same already, and this is refused
            _check_unchanged(path, was)
            temp.replace(real)
    except OSError as problem:
        raise _unusable(path, problem.strerror or str(problem)) from None


def _check_unchanged(path: Path, was: bytes | None) -> None:
    if read_bytes(path) != was:
        raise ToolError(
            ErrorCode.STALE,
            f"{path} was changed by another program meanwhile",
            "Nothing was changed. Try again; if the file belongs to a host that is running, quit that first.",
        )


def _unusable(path: Path, why: str) -> ToolError:
    return ToolError(ErrorCode.IO, f"{path}: {why}", "Nothing was changed.")
