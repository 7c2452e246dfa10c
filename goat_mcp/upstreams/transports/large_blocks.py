"""What large frames leave behind in this process: nothing, where its C library is told so.

glibc takes a block of many MB that is freed as a sign that such blocks are needed, and from then on keeps their pages
in its heaps: a process that relayed a few results of 15 MB would stay larger by a hundred MB for good.
"""

from __future__ import annotations

import functools
import sys

_M_MMAP_THRESHOLD = -3
LARGE_BYTES = 1024 * 1024
"""Blocks of this size go back to the system when they are freed. What is read from a pipe at a time is smaller."""


@functools.cache
def give_back_large_blocks() -> bool:
    """Have this process return large blocks at once, from now on. False where the C library knows no such setting."""
    if not sys.platform.startswith("linux"):
        return False
    import ctypes  # not needed by who never sees a large frame

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # musl has none, and returns them anyway
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES))
