"""Settings that are read again while a gateway runs: who follows them is notified within two seconds of a change.

A file that cannot be used leaves everything as it was and is a problem (design D15). So does a change that one of the
followers cannot use. A project's file counts as far as the user trusts it; an untrusted change may only deny more, and
one that cannot be used holds up nothing that the user changes in files of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from goat_mcp.calls.permissions.mode import allows_more
from goat_mcp.core.errors import ToolError
from goat_mcp.core.spec import SHIPPED_TOOLSETS
from goat_mcp.settings.settings import Settings, setting_keys
from goat_mcp.state.file_state import FileState, file_state

LOOK_S = 1.0
SETTLED_S = 0.2
"""How long files stay as they are before they are read: some editors move a file away, or empty it, before they write
it again, and in between it denies nothing."""
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

AT_START_ONLY = SHIPPED_TOOLSETS
"""Toolsets whose tools are read at the start, if they are on."""

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
        self.file_problems: Sequence[str] = ()
        """The same of files that settings name, whose followers keep what each said before."""
        self.also_waiting: Sequence[str] = ()
        """What of such files has changed since the start and is not followed."""
        self._at_start = self._read = settings
        self._is_open = is_open
        self._was_open = False
        self._states: dict[Path, FileState | None] = {file: file_state(file) for file in settings.watched_files}
        self._followers: list[Follower] = []
        self._seen = self._look()

    def follow(self, follower: Follower) -> None:
        """Have `follower` check, and then put into force, what settings say from now on."""
        self._followers.append(follower)

    @property
    def files(self) -> Sequence[Path]:
        """Those that are watched; none once tools may write to one of them."""
        files, named = self._read.watched_files, self._read.claude_settings
        if not self._was_open:
            # What counts of a project's is a matter of trust; of others' rules, for those who follow them.
            others = (*self._read.project_files, *named)
            self._was_open = any(self.is_open(file) for file in files if file not in others)
        return () if self._was_open else [file for file in files if file not in named or not self.is_open(file)]

    def is_open(self, file: Path) -> bool:
        """Whether tools may change a file unasked."""
        return self._is_open(file) or self._is_open(file.resolve())

    @property
    def waiting_for_restart(self) -> Sequence[str]:
        """The settings, files, and parts of files that they name, that have changed since the start and are not
        followed."""
        unread = [f"{file} (tools may write to it)" for file in self._unread()]
        if self._read is self._at_start:
            return unread
        followed = self._followed(self._read)
        keys = (key for key in setting_keys() if key not in followed)
        found = [key for key in keys if _value(self._read, key) != _value(self._at_start, key)]
        before, now = self._at_start.catalog.toolsets, self._read.catalog.toolsets
        found += [f"catalog.toolsets ({name})" for name in now if name in AT_START_ONLY and name not in before]
        return [*found, *self.also_waiting, *unread]

    def _unread(self) -> Sequence[Path]:
        """The files that have changed since they were read, and are not read again."""
        return [file for file, state in self._states.items() if file_state(file) != state and self.is_open(file)]

    async def watch(self, changed: Callable[[], None]) -> None:
        """Look at the files again and again, until cancelled. `changed` is called after each change of them, when
        their settings are in force or `problem` says why not."""
        reported: Sequence[Path] = []
        while self._read.watched_files:
            await anyio.sleep(LOOK_S)
            # Off the event loop: a file may lie on a disk that takes its time.
            look = await anyio.to_thread.run_sync(self._look, abandon_on_cancel=True)
            if (unread := await anyio.to_thread.run_sync(self._unread, abandon_on_cancel=True)) != reported:
                reported = unread
                changed()
            if not look or look == self._seen:
                continue
            await anyio.sleep(SETTLED_S)
            if look != await anyio.to_thread.run_sync(self._look, abandon_on_cancel=True):
                continue
            try:
                await self._load(keeps_project=False)
            except (ToolError, OSError) as broken:
                await self._load_without_project(broken)
            self._seen = look
            self._states.update(look)
            changed()

    async def _load(self, *, keeps_project: bool) -> None:
        again = partial(self._read.loaded_again, keeps_project=keeps_project)
        self._put_into_force(await anyio.to_thread.run_sync(again, abandon_on_cancel=True))

    async def _load_without_project(self, broken: ToolError | OSError) -> None:
        stays = "what was in force before stays in force"
        if self._read.project_files:
            try:
                await self._load(keeps_project=True)
                stays = "what the project's file said before stays in force"
            except (ToolError, OSError):
                pass  # it is not the project's file, or not that alone
        self.problem = f"{broken}; {stays}"

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
