"""The state directory: one private place for spill files, the catalog cache, the audit log and status."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

STATE_DIR_VARIABLE = "GOAT_MCP_STATE_DIR"


@dataclass(frozen=True)
class StateDirectory:
    """Paths below the state directory. Folders are created 0700 when first asked for."""

    path: Path

    @classmethod
    def default(cls) -> StateDirectory:
        """`GOAT_MCP_STATE_DIR`, else the platform's user state directory."""
        if named := os.environ.get(STATE_DIR_VARIABLE):
            return cls(Path(named).expanduser().absolute())
        home = Path.home()
        if sys.platform == "darwin":
            return cls(home / "Library" / "Application Support" / "goat-mcp")
        if sys.platform == "win32":
            return cls(Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local")) / "goat-mcp")
        return cls(Path(os.environ.get("XDG_STATE_HOME") or home / ".local" / "state") / "goat-mcp")

    def folder(self, *names: str) -> Path:
        """A private folder below, created if it is not there."""
        folder = self.path
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in names:  # one by one: parents that `mkdir` makes would be open to others
            folder = folder / name
            folder.mkdir(mode=0o700, exist_ok=True)
        return folder
