"""Opening, making and replacing files of our own, so that only the user can read them and links are not followed.

On POSIX by mode bits, on Windows by access lists and with handles that let others rename the file meanwhile.
"""

from __future__ import annotations

import os
from pathlib import Path

from goat_mcp.core import platform, posix
from goat_mcp.state import windows_files


def open_own(path: Path, flags: int, mode: int = 0o600) -> int:
    """A descriptor for bytes. A file that is made is the user's alone. Raises `OSError`; ELOOP for a link."""
    if platform.SYSTEM == "windows":
        return windows_files.open_shared(path, flags, private=True)
    return os.open(path, flags | posix.O_NOFOLLOW, mode)


def how_to_own() -> str:
    """The command by which users take the rights on a file from others."""
    if platform.SYSTEM == "windows":
        return f"icacls FILE /inheritance:r /grant:r {os.environ.get('USERNAME') or 'USER'}:F"
    return "chmod 600"


def replace_own(source: Path, target: Path) -> None:
    """Give a file the name of another one, which goes. Raises `OSError`.

    Windows refuses that while a program has the other one open; scanners do so for a moment, which is waited for.
    """
    if platform.SYSTEM == "windows":
        windows_files.replace_file(source, target)
    else:
        source.replace(target)


def make_own_folder(path: Path) -> None:
    """A directory that is the user's alone. Raises `FileExistsError`, and `OSError`."""
    if platform.SYSTEM == "windows":
        windows_files.make_private_folder(path)
    else:
        path.mkdir(mode=0o700)
