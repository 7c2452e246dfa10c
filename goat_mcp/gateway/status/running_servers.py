"""Which goat-mcp of this user serve now, and which of them read a file again when it changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

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
