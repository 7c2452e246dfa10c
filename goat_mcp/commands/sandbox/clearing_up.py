"""Run when a server has gone, however it went: removes what its sandboxes have left in the workspace, and its sessions'
temporary files."""

from __future__ import annotations

from pathlib import Path

from goat_mcp.commands.sandbox.placeholders import Placeholders
from goat_mcp.commands.sandbox.session_folders import SESSIONS, remove_left_over


def main(arguments: list[str]) -> None:
    """`arguments`: the folder of the notes, with that of the sessions in it."""
    Placeholders(Path(arguments[0])).clear_up()
    remove_left_over(Path(arguments[0]) / SESSIONS)
