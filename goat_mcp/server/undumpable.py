"""Other programs of the same user cannot look into a server: its environment, memory and open files (R-PROC-7).

A command without a sandbox could read the server's own variables, tokens among them, in `/proc/PID/environ` otherwise.
Root still can. What the server starts is not affected: the flag is reset by `exec`.
"""

from __future__ import annotations

import sys

_PR_SET_DUMPABLE = 4


def become_undumpable() -> None:
    """For good, and no core dumps either. Before anything is started that is not ours. Linux only, 2 ms."""
    if not sys.platform.startswith("linux"):
        return
    try:
        import ctypes
    except ImportError:  # a Python that was built without it
        return
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
