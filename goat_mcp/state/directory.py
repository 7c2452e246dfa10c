"""The state directory (spill files, caches, audit log, status) and the user's configuration directory.

platformdirs would move existing files: it knows no `~/.config` on macOS, and expands or ignores XDG variables that we
take as they are. Its import adds 7 ms to every start.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from goat_mcp.core import platform
from goat_mcp.state.own_file import make_own_folder

STATE_DIR_VARIABLE = "GOAT_MCP_STATE_DIR"


class Shared(Protocol):
    """What several servers share, as stores need it."""

    @property
    def machine(self) -> str:
        """Names this machine among them."""
        ...

    def table(self, name: str, schema: Sequence[str], after_loss: Sequence[str] = ()) -> Any:
        """A `database.Table`. `after_loss`: SQL for rows whose last changes the shared state may have lost."""
        ...

    def editing(self, folder: Path, group: str) -> AbstractContextManager[None]: ...

    def look(self, folder: Path, group: str) -> bool: ...

    def alone(self, name: str, max_wait_s: float) -> AbstractAsyncContextManager[None]: ...


@dataclass(frozen=True)
class StateDirectory:
    """Paths below the state directory. Folders are created 0700 when first asked for.

    `shared`: what several servers share is there instead (`state.url`).
    """

    path: Path
    shared: Shared | None = field(default=None, compare=False, repr=False)

    @classmethod
    def default(cls) -> StateDirectory:
        """`GOAT_MCP_STATE_DIR`, else the platform's user state directory."""
        if named := os.environ.get(STATE_DIR_VARIABLE):
            return cls(Path(named).expanduser().absolute())
        home = Path.home()
        if platform.SYSTEM == "macos":
            return cls(home / "Library" / "Application Support" / "goat-mcp")
        if platform.SYSTEM == "windows":
            return cls(Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local")) / "goat-mcp")
        return cls(Path(os.environ.get("XDG_STATE_HOME") or home / ".local" / "state") / "goat-mcp")

    def folder(self, *names: str) -> Path:
        """A private folder below, created if it is not there."""
        folder = self.path
        _make_sure_of(folder)
        for name in names:  # one by one: parents that `mkdir` makes would be open to others
            folder = folder / name
            _make_sure_of(folder)
        return folder

    def editing(self, group: str) -> AbstractContextManager[None]:
        """Around an edit of files that servers share (`redis.shared_files.GROUPS`), beside the lock of this machine.

        Raises `OSError` if the edit cannot be shared; then the files are as they were. Blocks its thread."""
        return nullcontext() if self.shared is None else self.shared.editing(self.path, group)

    @property
    def stored_secrets(self) -> Path:
        """The file that changes with each secret that is stored. It need not be there."""
        return self.path / "secrets" / "secrets.json"


def _make_sure_of(folder: Path) -> None:
    try:
        make_own_folder(folder)
    except FileNotFoundError:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _make_sure_of(folder)
    except FileExistsError:
        if not folder.is_dir():
            raise


SEARCH_PRIORITY_FILE_NAME = "search_priority.json"
UPSTREAMS_FILE_NAME = "upstreams.json"


def config_folder() -> Path:
    """`goat-mcp` in the user's config directory. It need not be there."""
    base = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    if platform.SYSTEM == "windows":
        base = Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming")
    return base / "goat-mcp"


def own_manifests_folder() -> Path:
    """The manifests that count if nothing names others."""
    return config_folder() / "manifests"


def own_upstreams_file() -> Path:
    """The upstreams that count if nothing names others."""
    return config_folder() / UPSTREAMS_FILE_NAME


def search_priority_files() -> tuple[Path, ...]:
    """Where the user's order of search results may lie: with their other settings, else where goa has it."""
    places = [config_folder() / SEARCH_PRIORITY_FILE_NAME]
    with suppress(RuntimeError):  # no home
        places.append(Path.home() / ".goa" / SEARCH_PRIORITY_FILE_NAME)
    return tuple(places)
