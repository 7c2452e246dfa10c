"""Which files of a declared tool run when it is called, and whether they are still those that a call was judged with.

The files that its entry names; what they import or start themselves is not looked at.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from goat_mcp.manifests.entry import CommandEntry, Entry, PythonEntry


def handler_files(entry: Entry, folder: Path) -> Callable[[str], str]:
    """Gives for an export what tells its files from any that take their place, until the next change of either."""
    if isinstance(entry, PythonEntry) and entry.file is not None:
        named = (str(entry.file),)
    elif isinstance(entry, CommandEntry):
        # A program by its name alone is found on PATH; of its arguments any may be a script beside the manifest.
        named = tuple(os.path.join(folder, one) for one in entry.arguments if one)  # noqa: PTH118  # as in `_state`
    else:
        named = ()
    return lambda export: " ".join(_state(path.replace("{export}", export)) for path in named)


def _state(path: str) -> str:
    """Looked up at each call, twice: a `Path` costs more than the look."""
    try:
        found = os.stat(path)  # noqa: PTH116  # see above
    except (OSError, ValueError):
        return "-"
    if not stat.S_ISREG(found.st_mode):
        return "-"
    # The time of the last change of any kind: that of the contents can be set at will.
    return f"{found.st_dev}.{found.st_ino}.{found.st_size}.{found.st_mtime_ns}.{found.st_ctime_ns}"
