"""`python -m goat_mcp.cli.resident.linux_broker FOLDER NAME [IDLE_S]`: be the broker, in the background."""

from __future__ import annotations

import os
import sys
from pathlib import Path

if sys.platform != "linux":
    raise ImportError("only Linux has a broker")


def main(folder: str, name: str, idle_s: str = "") -> None:
    """Leave whoever started us, and serve until nobody needs it any more."""
    if os.fork():
        os._exit(0)
    os.setsid()
    # After the fork, which is all that our starter waits for.
    from goat_mcp.cli.serve import become_undumpable
    from goat_mcp.upstreams.sharing.broker import IDLE_S, run_broker
    from goat_mcp.upstreams.sharing.runtime_folder import owned_socket

    become_undumpable()  # launches hold values of secrets
    owned = owned_socket(Path(folder), name)
    if owned is not None:
        run_broker(owned, idle_s=float(idle_s) if idle_s else IDLE_S)


if __name__ == "__main__":
    main(*sys.argv[1:])
