"""The program that started this server over stdio: how, and when it is gone."""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Final

import anyio

PARENT_POLL_S = 0.5
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
        launcher = environment.pop(LAUNCHER, "")
        how = environment.pop(STARTED, "")
        return cls(os.getppid(), int(launcher) if launcher.isdigit() else None, how)

    async def gone(self) -> None:
        """Return once the host is gone, even if another process keeps our stdin open."""
        if self.launcher is not None:
            await anyio.wait_readable(self.launcher)
            return
        while os.getppid() == self.parent:  # noqa: ASYNC110  # no event reports a parent's end
            await anyio.sleep(PARENT_POLL_S)

    def keep_over_exec(self, environment: MutableMapping[str, str]) -> None:
        """For the process that replaces this one in place."""
        environment[STARTED] = self.how_started
        if self.launcher is not None:
            os.set_inheritable(self.launcher, True)
            environment[LAUNCHER] = str(self.launcher)
