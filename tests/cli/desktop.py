"""Where programs with windows keep their files on this system, below the home directory."""

from __future__ import annotations

from pathlib import Path

from goat_mcp.core import platform

PROGRAMS = Path("Library/Application Support" if platform.SYSTEM == "macos" else ".config")
CLAUDE_DESKTOP = PROGRAMS / "Claude" / "claude_desktop_config.json"
