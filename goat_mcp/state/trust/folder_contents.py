"""All that lies in a directory which a settings file names: it is trusted, and obeyed, as a whole."""

from __future__ import annotations

import os
from pathlib import Path

from goat_mcp.state.trust.settings_file import MAX_NAMED_BYTES, BrokenFile, read_bytes

MAX_FILES = 1_000


def folder_contents(folder: Path) -> dict[Path, bytes]:
    """Every file below, by path. Raises `BrokenFile`: for a link too, since what it leads to may change unseen.

    Compiled Python is left out: what is made of a source is made anew where the source changes.
    """
    found: dict[Path, bytes] = {}
    size = 0
    for where, names, files in os.walk(folder):
        names[:] = sorted(name for name in names if name != "__pycache__")
        for name in (*names, *sorted(files)):
            path = Path(where) / name
            if path.is_symlink():
                raise BrokenFile(f"{path} is a symbolic link; put the file itself there")
        for name in sorted(files):
            path = Path(where) / name
            found[path] = read_bytes(path)
            size += len(found[path])
            if len(found) > MAX_FILES or size > MAX_NAMED_BYTES:
                raise BrokenFile(f"{folder}: holds more than {MAX_FILES} files, or {MAX_NAMED_BYTES} bytes")
    return found
