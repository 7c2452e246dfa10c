"""Whether a settings file may speak: what is in it, whose it is, and which projects' files the user has trusted.

What the settings mean is `goat_mcp.settings`' business; nothing here knows a key but those of denials.
"""

from __future__ import annotations

FILE_NAME = "goat-mcp.yaml"
"""In a project's directory, and in the user's config directory."""
