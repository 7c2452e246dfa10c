"""A port for a server that must be told its own before it listens. Whoever can listen on port 0 does that instead."""

from __future__ import annotations

import random
import socket

FIRST, LAST = 12_000, 30_000
"""Below what the system itself gives out (from 32,768 on Linux, 49,152 elsewhere): between our look and the server's
start no other test that asks for any port, and no connection of anybody, is given this one."""


def free_port() -> int:
    """Nobody listens there now."""
    chosen = random.SystemRandom()  # tests that run beside this one must not look at the same numbers
    while True:
        port = chosen.randint(FIRST, LAST)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
