"""Settings that are read again while a gateway runs: who follows them is notified within two seconds of a change.

A file that cannot be used leaves everything as it was and is a problem (design D15). So does a change that one of the
followers cannot use. A project's file counts as far as the user trusts it; an untrusted change may only deny more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from goat_mcp.calls.permissions.mode import allows_more
from goat_mcp.core.errors import ToolError
from goat_mcp.settings.settings import Settings, setting_keys
from goat_mcp.state.file_state import FileState, file_state

LOOK_S = 1.0
FOLLOWED = frozenset(
    {
        "bash.allowed",
        "bash.blocked",
        "catalog.allow",
        "catalog.deny",
        "catalog.mode",
        "catalog.presets",
        "catalog.token_budget",
        "catalog.toolsets",
        "claude_settings",
        "permissions.allow",
        "permissions.ask",
        "permissions.deny",
    }
)
"""The settings that running gateways follow, besides a `mode` that allows no more than that of the start. All others
count from the next start on."""

Follower = Callable[[Settings], Callable[[], None]]
"""Checks settings, and returns what puts them into force. Raises `BrokenSettings` if it cannot use them."""


class WatchedSettings:
    """`in_force` are the settings of the start with what is followed as the files had it when they were last usable.

    `is_open` says of a path whether tools may change what lies there unasked: settings there stay as at the start.
    """

    def __init__(self, settings: Settings, is_open: Callable[[Path], bool]) -> None:
        self.in_force = settings
        self.problem = ""
        """Why what the files say now is not in force; empty if it is."""
        self._at_start = self._read = settings
        self._is_open = is_open
        self._was_open = False
        self._followers: list[Follower] = []
        self._seen = self._look()

    def follow(self, follower: Follower) -> None:
        """Have `follower` check, and then put into force, what settings say from now on."""
        self._followers.append(follower)

    @property
    def files(self) -> Sequence[Path]:
        """Those that are watched; none once tools may write to one of them."""
        files = self._read.watched_files
        if not self._was_open:
            of_projects = self._read.project_files  # what counts of them is a matter of trust
            self._was_open = any(
                self._is_open(one) for file in files if file not in of_projects for one in (file, file.resolve())
            )
        return () if self._was_open else files

    @property
    def waiting_for_restart(self) -> Sequence[str]:
        """The settings that have changed since the start and are not followed."""
        if self._read is self._at_start:
            return ()
        followed = self._followed(self._read)
        keys = (key for key in setting_keys() if key not in followed)
        return [key for key in keys if _value(self._read, key) != _value(self._at_start, key)]

    async def watch(self, changed: Callable[[], None]) -> None:
        """Look at the files again and again, until cancelled. `changed` is called after each change of them, when
        their settings are in force or `problem` says why not."""
        while True:
            await anyio.sleep(LOOK_S)
            # Off the event loop: a file may lie on a disk that takes its time.
            look = await anyio.to_thread.run_sync(self._look, abandon_on_cancel=True)
            if not look or look == self._seen:
                continue
            try:
                read = await anyio.to_thread.run_sync(self._read.loaded_again, abandon_on_cancel=True)
                self._put_into_force(read)
            except (ToolError, OSError) as broken:
                self.problem = f"{broken}; what was in force before stays in force"
            self._seen = look
            changed()

    def _put_into_force(self, read: Settings) -> None:
        """Raises `BrokenSettings`; then nothing has changed."""
        settings = self._at_start.with_followed(read, self._followed(read))
        for apply in [follower(settings) for follower in self._followers]:
            apply()
        self._read, self.in_force, self.problem = read, settings, ""

    def _followed(self, read: Settings) -> Collection[str]:
        # Who started it said how far it may go at most; sandboxes and clients were set up for that.
        return FOLLOWED if allows_more(self._at_start.mode, read.mode) else FOLLOWED | {"mode"}

    def _look(self) -> Sequence[tuple[Path, FileState | None]]:
        return [(file, file_state(file)) for file in self.files]


def _value(settings: Settings, key: str) -> Any:
    found: Any = settings
    for name in key.split("."):
        found = getattr(found, name)
    return found
