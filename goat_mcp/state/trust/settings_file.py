"""A settings file as it lies there: read once, whole, and understood strictly. Nothing here says whether it counts."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from goat_mcp.core import posix
from goat_mcp.core.json_values import has_more_parts
from goat_mcp.state.file_safety import why_folder_unsafe, why_readable, why_writable
from goat_mcp.state.trust import FILE_NAME, has_project_file

MAX_BYTES = 256 * 1024
MAX_NAMED_BYTES = 4 * 1024 * 1024
MAX_VALUES = 10_000


class BrokenFile(ValueError):
    """A settings file that cannot be used; the text begins with the file, and with the line if there is one."""


@dataclass(frozen=True)
class SettingsFile:
    """Bytes that were read once: what is hashed, shown and obeyed is the same."""

    path: Path
    data: bytes
    why_readable: str = ""
    """How other users of this machine could read it; empty if they could not."""

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @cached_property
    def tree(self) -> dict[str, Any]:
        """The settings in it. Raises `BrokenFile`."""
        return _parsed(self.path, self.data)


def read_users_file(path: Path) -> SettingsFile:
    """A file that the user named or keeps in their config directory, where a link may lead elsewhere.

    Raises `BrokenFile`: for one that cannot be read, and for one that somebody else could have written (PR-32).
    """
    data, found = _read(path, os.O_RDONLY)
    try:
        reason = why_writable(found) or why_folder_unsafe(path.resolve().parent, shared_is_safe=True)
    except OSError as problem:
        reason = f"is in a folder that cannot be looked at: {problem.strerror}"
    if reason:
        raise BrokenFile(f"{path} {reason}")
    return SettingsFile(path, data, why_readable(found))


def find_project_file(folder: Path) -> SettingsFile | None:
    """The settings file of a project, None if it has none. A link is refused: it is not the project's content.

    Raises `BrokenFile`.
    """
    path = folder / FILE_NAME
    if not has_project_file(folder):
        return None
    if path.is_symlink():
        raise BrokenFile(f"{path} is a symbolic link; a project's settings file is a file of its own")
    return SettingsFile(path.resolve(), _read(path, os.O_RDONLY | posix.O_NOFOLLOW)[0])


def read_bytes(path: Path) -> bytes:
    """A file that a settings file names. Raises `BrokenFile`."""
    return _read(path, os.O_RDONLY, MAX_NAMED_BYTES)[0]


def _read(path: Path, flags: int, max_bytes: int = MAX_BYTES) -> tuple[bytes, os.stat_result]:
    try:
        # A pipe that nobody writes to must not hold up the start.
        descriptor = os.open(path, flags | posix.O_NONBLOCK)
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise BrokenFile(f"{path}: is not a regular file")
            with os.fdopen(os.dup(descriptor), "rb") as file:
                data = file.read(max_bytes + 1)
        finally:
            os.close(descriptor)
    except OSError as problem:
        if os.path.isdir(path):  # noqa: PTH112  # Windows opens none; never raises
            raise BrokenFile(f"{path}: is not a regular file") from None
        reason = "it is a symbolic link" if problem.errno == errno.ELOOP else problem.strerror
        raise BrokenFile(f"{path}: cannot be read: {reason}") from None
    if len(data) > max_bytes:
        raise BrokenFile(f"{path}: is longer than {max_bytes} bytes")
    return data, found


def _parsed(path: Path, data: bytes) -> dict[str, Any]:
    import yaml

    from goat_mcp.state.trust.strict_yaml import StrictLoader

    if not data.strip():
        raise BrokenFile(f"{path}: is empty; delete it, or write settings as `key: value`")
    try:
        loaded: Any = yaml.load(data.decode("utf-8-sig"), StrictLoader)
    except UnicodeDecodeError:
        raise BrokenFile(f"{path}: not valid YAML: it is not UTF-8 text") from None
    except yaml.YAMLError as problem:
        where = getattr(problem, "problem_mark", None)
        line = f":{where.line + 1}:{where.column + 1}" if where else ""
        raise BrokenFile(f"{path}{line}: not valid YAML: {getattr(problem, 'problem', None) or problem}") from None
    except (ValueError, RecursionError) as problem:
        raise BrokenFile(f"{path}: not valid YAML: {type(problem).__name__}") from None
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise BrokenFile(f"{path}: wants settings as `key: value`, got {type(loaded).__name__}")
    # Few lines of YAML can stand for more values than there is memory for, or for one that holds itself.
    if has_more_parts(loaded, MAX_VALUES):
        raise BrokenFile(f"{path}: holds more than {MAX_VALUES} values; aliases count each time")
    return cast("dict[str, Any]", loaded)
