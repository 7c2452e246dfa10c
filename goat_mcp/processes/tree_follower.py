"""Looking at a command's processes while it runs, on systems that do not show at its end what has left its session."""

from __future__ import annotations

import asyncio

import anyio
import anyio.to_thread

from goat_mcp.core import platform
from goat_mcp.processes.process_guard import ProcessGuard
from goat_mcp.processes.process_tree import ProcessTree

_FIRST_PAUSE_S = 0.03
_LONGEST_PAUSE_S = 5.0


class TreeFollower:
    """Looks soon, then more and more rarely: a look costs some 20 ms of a processor on a busy machine.

    The tree knows at its end what was a child of a member at any look, and the guard ends it if we are killed. What
    leaves its session and loses its parent between two looks is found by its marker only, if the system shows that.
    Does nothing if there is `/proc`: a tree finds such processes by their marker and their pipe then. Only for the
    event loop.
    """

    def __init__(self, tree: ProcessTree, guard: ProcessGuard, *, is_command: bool = True) -> None:
        """A server of ours, which is no command, is not followed: there may be many, and they run for long."""
        self._tree = tree
        self._guard = guard
        self._groups: set[int] = set()
        is_needed = is_command and platform.HAS_PROCESS_GROUPS and not platform.HAS_PROC
        self._task = asyncio.create_task(self._follow()) if is_needed else None

    def stop(self) -> None:
        """Nothing of it runs any more."""
        if self._task is not None:
            self._task.cancel()
        self._watch_only(set())

    async def _follow(self) -> None:
        pause_s = _FIRST_PAUSE_S
        while True:
            await anyio.sleep(pause_s)
            members = await anyio.to_thread.run_sync(self._tree.members)
            self._watch_only({one.group for one in members} - {self._tree.leader})
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _watch_only(self, groups: set[int]) -> None:
        """Let the guard know these groups beside the first one, and no others."""
        for group in groups - self._groups:
            self._guard.watch(group, is_command=True)
        for group in self._groups - groups:
            self._guard.forget(group)
        self._groups = groups
