"""What tells one content of a file from the next without reading it: for whoever watches files."""

from __future__ import annotations

from pathlib import Path

FileState = tuple[int, int, int, int]


def file_state(file: Path) -> FileState | None:
    """None if there is no file, or none that can be looked at."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
