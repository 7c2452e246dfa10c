"""Which goat-mcp of this user serve now, and how they see a change of a file: in words, and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from goat_mcp.cli.terminal import say
from goat_mcp.gateway.status.process_files import ProcessFiles
from goat_mcp.state.directory import StateDirectory


def running() -> list[dict[str, Any]]:
    """What each says of itself."""
    return ProcessFiles(StateDirectory.default()).running()


def who(document: Mapping[str, Any]) -> str:
    """`process 123 (stdio, in /home/ada/project)`."""
    where = ", ".join(document.get("workspace", ())) or "no workspace yet"
    return f"process {document['pid']} ({document.get('transport', '?')}, in {where})"


def readers_of(path: Path) -> list[dict[str, Any]]:
    """Who reads the file again when it changes."""
    wanted = path.resolve()
    return [one for one in running() if wanted in [Path(file).resolve() for file in one.get("watched_files", ())]]


def fields(documents: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """For `--json`."""
    return [{name: one.get(name) for name in ("pid", "transport", "workspace")} for one in documents]


def say_followers(documents: Sequence[Mapping[str, Any]]) -> None:
    """A line on who follows the change, or that nobody does."""
    if documents:
        names = ", ".join(map(who, documents))
        say(f"Running servers follow within 2 seconds: {names}")
    elif running():
        say("No running goat-mcp reads this file; those that are started from now on do.")
    else:
        say("No goat-mcp is running: this counts from the next start on.")
