"""Run when a server has gone, however it went: removes what its sandboxes have left in the workspace."""

from __future__ import annotations

from pathlib import Path

from goat_mcp.sandbox.placeholders import Placeholders


def main(arguments: list[str]) -> None:
    """`arguments`: the folder of the notes."""
    Placeholders(Path(arguments[0])).clear_up()
