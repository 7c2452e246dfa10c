"""Runs when a server is gone, however it ended: removes its placeholders in the workspace and its session folders."""

from __future__ import annotations

from pathlib import Path

from goat_mcp.commands.sandbox.placeholders import Placeholders
from goat_mcp.commands.sandbox.temporary_folders import SESSIONS, remove_stale_sessions


def main(arguments: list[str]) -> None:
    """`arguments`: the folder of the notes, in which the session folders are too."""
    Placeholders(Path(arguments[0])).clean_up()
    remove_stale_sessions(Path(arguments[0]) / SESSIONS)
