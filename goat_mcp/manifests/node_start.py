"""Becomes Node.js with the pipes where `worker.mjs` expects them: requests at 3, answers at 4. Prints go to stderr.

A program of its own: of ours it has `core/posix` alone.
"""

from __future__ import annotations

import os
import sys

sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))  # noqa: PTH100, PTH120  # a Path costs more than all else here

from goat_mcp.core import posix  # it runs without the folder that goat-mcp is installed in

MAX_MEMORY_BYTES = 4 * 1024 * 1024 * 1024


def main() -> None:
    """`node_start.py PROGRAM ARGUMENT...`"""
    os.dup2(0, 3)
    os.dup2(1, 4)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    # Of memory that is written to: Node.js reserves far more addresses than it uses.
    posix.limit_resource("DATA", MAX_MEMORY_BYTES)
    posix.limit_resource("CORE", 0)
    os.execv(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
