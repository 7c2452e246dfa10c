"""How a command of this server's own (`goa_command__run`) is taken apart: for the tool, and for rules about it."""

from __future__ import annotations

import shlex


def words_of(command: str) -> list[str]:
    """Raises `ValueError` where quotes do not close."""
    return shlex.split(command.strip().removeprefix("/"))


def setting_asked(command: str) -> str | None:
    """The setting that `config KEY` reads; None for other commands."""
    try:
        words = words_of(command)
    except ValueError:
        return None
    return words[1] if len(words) == 2 and words[0] == "config" else None
