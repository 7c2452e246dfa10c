"""Becomes Node.js with the pipes where `worker.mjs` expects them: requests at 3, answers at 4. Prints go to stderr.

A program of its own that imports nothing of ours.
"""

from __future__ import annotations

import os
import resource
import sys

MAX_MEMORY_BYTES = 4 * 1024 * 1024 * 1024


def main() -> None:
    """`node_start.py PROGRAM ARGUMENT...`"""
    os.dup2(0, 3)
    os.dup2(1, 4)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    # Of memory that is written to: Node.js reserves far more addresses than it uses.
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = MAX_MEMORY_BYTES if most == resource.RLIM_INFINITY else min(MAX_MEMORY_BYTES, most)
    resource.setrlimit(resource.RLIMIT_DATA, (wanted, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.execv(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
