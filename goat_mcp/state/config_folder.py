"""Where the user's own files for goat-mcp lie: settings, upstreams that need no flag, the order of search results."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

SEARCH_PRIORITY_FILE_NAME = "search_priority.json"
UPSTREAMS_FILE_NAME = "upstreams.json"


def config_folder() -> Path:
    """`goat-mcp` in the user's config directory. It need not be there."""
    base = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    if os.name == "nt":
        base = Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming")
    return base / "goat-mcp"


def own_manifests_folder() -> Path:
    """The manifests that count where nothing names others."""
    return config_folder() / "manifests"


def own_upstreams_file() -> Path:
    """The upstreams that count where nothing names others."""
    return config_folder() / UPSTREAMS_FILE_NAME


def search_priority_files() -> tuple[Path, ...]:
    """Where the user's order of search results may lie: with their other settings, else where goa has it."""
    places = [config_folder() / SEARCH_PRIORITY_FILE_NAME]
    with suppress(RuntimeError):  # no home
        places.append(Path.home() / ".goa" / SEARCH_PRIORITY_FILE_NAME)
    return tuple(places)
