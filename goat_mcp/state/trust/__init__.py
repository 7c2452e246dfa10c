"""Whether a settings file may speak: what is in it, whose it is, and which projects' files the user has trusted.

What the settings mean is `goat_mcp.settings.settings`' business; nothing here knows a key but those of denials.
"""

from __future__ import annotations

import os
from pathlib import Path

FILE_NAME = "goat-mcp.yaml"
"""In a project's directory, and in the user's config directory."""
TRUST_FILE_NAME = "trust.json"
"""In the state directory: what the user has trusted."""


def has_project_file(folder: Path) -> bool:
    """Whether something of that name is there that may have a say: a file, a link, whatever cannot be understood.

    An empty directory has none: it keeps the name from being taken while a sandboxed command runs.
    """
    path = folder / FILE_NAME
    if not os.path.lexists(path):
        return False
    try:
        return path.is_symlink() or not path.is_dir() or any(path.iterdir())
    except OSError:
        return True
