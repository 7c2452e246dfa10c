"""`python -m goat_mcp.cli.resident.linux_broker FOLDER NAME [IDLE_S]`: be the broker, in the background."""

from __future__ import annotations

import os
import sys
from pathlib import Path

if sys.platform != "linux":
    raise ImportError("only Linux has a broker")

from goat_mcp.cli.serve import become_undumpable
from goat_mcp.upstreams.sharing.broker import IDLE_S, run_broker
from goat_mcp.upstreams.sharing.runtime_folder import owned_socket


def main(folder: str, name: str, idle_s: str = "") -> None:
    """Leave whoever started us, who waits until we listen, and serve until nobody needs it any more."""
    become_undumpable()  # launches hold values of secrets
    is_listening, listens = os.pipe()
    if os.fork():
        # Sessions look who listens, so it must be the process that stays.
        os.close(listens)
        os._exit(0 if os.read(is_listening, 1) else 1)
    os.close(is_listening)
    os.setsid()
    owned = owned_socket(Path(folder), name)
    os.write(listens, b"1")
    os.close(listens)
    if owned is not None:
        run_broker(owned, idle_s=float(idle_s) if idle_s else IDLE_S)


if __name__ == "__main__":
    main(*sys.argv[1:])
