"""`python -m goat_mcp.cli.resident FOLDER NAME`: be the resident process of this build. Descriptor 3 holds its lock."""

from __future__ import annotations

import gc
import os
import sys

import goat_mcp_launch


def main(folder: str, name: str) -> None:
    """Serve until there is no need any more; in each fork, be a `goat-mcp` of its own."""
    os.set_inheritable(3, False)
    sys.path[0] = os.path.dirname(sys.executable)  # noqa: PTH120  # as for the console script, not the current folder
    gc.disable()
    from goat_mcp.cli.resident.fork_server import ForkServer
    from goat_mcp.cli.resident.preloading import preload

    preload()
    if goat_mcp_launch.build_name() != name:
        return  # the files changed while they were read
    gc.collect()
    gc.freeze()
    session = ForkServer(folder, name, lock=3).serve()
    if session is not None:
        session()


if __name__ == "__main__":
    main(*sys.argv[1:])
