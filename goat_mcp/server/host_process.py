"""The program that started this server over stdio: how, and when it is gone."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import anyio

from goat_mcp.processes.process_table import is_stopped

PARENT_POLL_S = 0.5
_STOPPED_POLL_S = 0.1
STARTED: Final = "_GOAT_MCP_STARTED"
"""Says how the server was started; the launcher sets it (`goat_mcp_launch`)."""
LAUNCHER: Final = "_GOAT_MCP_LAUNCHER"
"""Names the descriptor of the launcher's connection, in a fork of the resident process."""


@dataclass(frozen=True)
class HostProcess:
    """`parent` is read before anything slow is imported: it may die while we start. `launcher` is the connection of the
    launcher that stands in for this process, which ends with it; then the parent is the resident process."""

    parent: int
    launcher: int | None = None
    how_started: str = ""
    """`resident`, or why the server has a process of its own; empty if no launcher was asked."""

    @classmethod
    def taken_from(cls, environment: MutableMapping[str, str]) -> HostProcess:
        """What the environment says, which says it no more: it is nobody else's."""
        named = environment.pop(LAUNCHER, "")
        how = environment.pop(STARTED, "")
        launcher = int(named) if named.isdigit() else None
        if launcher is not None:
            os.set_inheritable(launcher, False)
        return cls(os.getppid(), launcher, how)

    async def gone(self, on_term: Callable[[int], None]) -> None:
        """Return once the host is gone, even if another process keeps our stdin open. `on_term` is called with the
        sender of each SIGTERM that the launcher has got."""
        if self.launcher is None:
            while os.getppid() == self.parent:  # noqa: ASYNC110  # no event reports a parent's end
                await anyio.sleep(PARENT_POLL_S)
            return
        pid = _peer(self.launcher)
        while True:
            with anyio.move_on_after(PARENT_POLL_S) as waiting:
                await anyio.wait_readable(self.launcher)
            if not waiting.cancelled_caught:
                if not (sender := _received(self.launcher)):
                    return
                on_term(int.from_bytes(sender, "big"))
            while is_stopped(pid):  # SIGSTOP, which it cannot pass on: nothing happens here either
                time.sleep(_STOPPED_POLL_S)  # noqa: ASYNC251

    def say_it_ends_well(self) -> None:
        """That this server is about to exit with status 0: the resident process, which reports the end, may be gone."""
        if self.launcher is not None:
            with suppress(OSError):
                os.write(self.launcher, b"n")

    def keep_over_exec(self, environment: MutableMapping[str, str]) -> None:
        """For the process that replaces this one in place."""
        environment[STARTED] = self.how_started
        if self.launcher is not None:
            os.set_inheritable(self.launcher, True)
            environment[LAUNCHER] = str(self.launcher)


_SO_PEERCRED: int = getattr(socket, "SO_PEERCRED", 0)


def _peer(descriptor: int) -> int:
    with socket.socket(fileno=os.dup(descriptor)) as connection:
        return int.from_bytes(connection.getsockopt(socket.SOL_SOCKET, _SO_PEERCRED, 4), sys.byteorder)


def _received(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4)
    except ConnectionResetError:
        return b""
