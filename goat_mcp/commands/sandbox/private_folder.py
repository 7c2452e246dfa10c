"""A folder for one program's temporary files, where the sandbox has no /tmp of its own. Gone with it, even in a crash.

Locked as long as its maker lives, so that the next one of us can tell what a crash has left from what is in use.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

_PREFIX = "goat-mcp-sandbox-"
_TOO_YOUNG_S = 60.0
"""One that is just being made is not locked yet."""


class PrivateFolder:
    """Makes one, 0700. Raises `OSError`."""

    def __init__(self) -> None:
        import fcntl

        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def remove(self) -> None:
        """With all that is in it. Once."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._descriptor)


def remove_stale_folders() -> None:
    """Remove what processes of ours, of this user, have left that are no more."""
    import fcntl

    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                status = os.fstat(descriptor)
                if status.st_uid == os.geteuid() and time.time() - status.st_mtime > _TOO_YOUNG_S:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(descriptor)
