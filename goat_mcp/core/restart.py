"""That the server is to start itself anew: from whoever asks for it to whoever serves. How: `server.restart`."""

from __future__ import annotations

from collections.abc import Callable

import anyio


def _nothing() -> None:
    """Nothing is known that could fail."""


class Restart:
    """`prevented` says why this process cannot; empty where it can. `check` raises `ToolError` where the process
    that would follow could not start."""

    def __init__(self) -> None:
        self.prevented = "no `goat-mcp serve` runs it"
        self.check: Callable[[], object] = _nothing
        self.wanted = anyio.Event()
        self.reason = ""

    def request(self, reason: str) -> None:
        """Calls that run are let finish, and answered; then the process is replaced."""
        self.reason = reason
        self.wanted.set()
