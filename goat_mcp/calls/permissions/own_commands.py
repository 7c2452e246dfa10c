"""How a command of this server's own (`goa_command__run`) is taken apart: for the tool, and for rules about it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from goat_mcp.calls.permissions.mode import Mode

MODES: Mapping[str, Mode] = {mode.value.lower(): mode for mode in Mode} | {"confirm": Mode.DEFAULT}


def words_of(command: str) -> list[str]:
    """Raises `ValueError` where quotes do not close."""
    return shlex.split(command.strip().removeprefix("/"))


def setting_asked(command: str) -> str | None:
    """The setting that `config KEY` reads; None for other commands."""
    words = _words(command)
    return words[1] if len(words) == 2 and words[0] == "config" else None


def mode_asked(words: Sequence[str]) -> Mode | None:
    """The mode that `mode NAME` changes to: the one command that changes anything. None for other words, and for a
    mode that there is not."""
    return MODES.get(words[1].lower()) if len(words) == 2 and words[0] == "mode" else None


def changes_something(command: str) -> bool:
    """Whether it is a command that does; what is none of ours is refused, and changes nothing."""
    return mode_asked(_words(command)) is not None


def _words(command: str) -> list[str]:
    try:
        return words_of(command)
    except ValueError:
        return []
