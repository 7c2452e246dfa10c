"""Where the user's own files for goat-mcp lie: their settings, and the upstreams that need no flag."""

from __future__ import annotations

import os
from pathlib import Path

UPSTREAMS_FILE_NAME = "upstreams.json"


def config_folder() -> Path:
    """`goat-mcp` in the user's config directory. It need not be there."""
    base = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    if os.name == "nt":
        base = Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming")
    return base / "goat-mcp"


def own_upstreams_file() -> Path:
    """The upstreams that count where nothing names others."""
    return config_folder() / UPSTREAMS_FILE_NAME
