"""The extensions the settings choose among the installed ones. Nothing that looks for packages is loaded for none."""

from __future__ import annotations

from collections.abc import Sequence

from goat_mcp.extensions import Extension
from goat_mcp.settings import BrokenSettings


def chosen_extensions(names: Sequence[str]) -> Sequence[Extension]:
    """In the order of the settings. Raises `BrokenSettings` for one that is not installed or cannot be loaded."""
    if not names:
        return ()
    from goat_mcp.extensions.installed import BrokenExtension, installed_extensions

    try:
        return installed_extensions(names)
    except BrokenExtension as broken:
        raise BrokenSettings(f"extensions: {broken}", "Mend or install it, or take it off the list.") from broken
