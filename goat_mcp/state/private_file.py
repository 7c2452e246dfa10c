"""Storing one small file of ours in a private folder: all of it or nothing, 0600, on disk when it returns.

And what becomes of one that is found damaged (R-CRASH-1).
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Generator
from pathlib import Path
from typing import Any

from goat_mcp.state.database import Warn
from goat_mcp.state.own_file import open_own, replace_own

_ASIDE = ".corrupt"
TEMP_PREFIX = "."


def write_private(path: Path, data: bytes, *, synced: bool = True, outlasts_power: bool = False) -> None:
    """Make `data` the whole content. Raises `OSError`. What a killed writer leaves begins with a dot.

    `synced`: the content is on disk when this returns. `outlasts_power`: that it replaced what was there is, too.
    """
    temp = path.with_name(f"{TEMP_PREFIX}{path.name}.{secrets.token_hex(4)}")
    with new_file(temp, data, synced=synced):
        replace_own(temp, path)
    if outlasts_power:
        _sync_folder(path.parent)


@contextlib.contextmanager
def new_file(path: Path, data: bytes, *, synced: bool = True) -> Generator[None]:
    """A new file, 0600, with its content, on disk if it is `synced`; the block puts it into place.

    If that fails the file is removed. Raises `OSError`.
    """
    descriptor = open_own(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            if synced:
                file.flush()
                os.fsync(file.fileno())
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            path.unlink()
        raise


def no_warning(event: str, **fields: Any) -> None:
    """The log of whoever has none."""


def set_aside(path: Path, warn: Warn = no_warning) -> Path | None:
    """Give a damaged file another name, so that somebody can look at it, and tell the log.

    None if that cannot be done, or where nothing is there.
    """
    if path.suffix == _ASIDE:
        return path
    aside = path.with_name(path.name + _ASIDE)
    try:
        replace_own(path, aside)
    except OSError:
        return None
    warn("damaged state file set aside", path=str(aside))
    return aside


def _sync_folder(folder: Path) -> None:
    """Some systems cannot, and the file is whole there all the same."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
