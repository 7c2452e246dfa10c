"""Access lists and extended attributes on macOS, which Python has no calls for."""

from __future__ import annotations

import ctypes
import errno
import os

_ACCESS_LIST = 1 << 0
_EXTENDED = 1 << 2
"""`copyfile.h`. Not COPYFILE_STAT, which COPYFILE_METADATA has in it: a changed file keeps no old times."""


def copy_extended(source: int, target: int) -> None:
    """From one open file to another. What the target has from its folder's access list stays. Raises `OSError`."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "fcopyfile"):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if libc.fcopyfile(source, target, None, ctypes.c_uint32(_ACCESS_LIST | _EXTENDED)) != 0:
        problem = ctypes.get_errno()
        raise OSError(problem, os.strerror(problem))
