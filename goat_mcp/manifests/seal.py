"""Directories whose files count only as they were when the user trusted them, or when this process began.

Those of a trusted project, and those that tools may write to: otherwise a model could change what a declared tool runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from goat_mcp.core.errors import ErrorCode, ToolError


class Seal:
    """`contents` are the files, as they count."""

    def __init__(self, contents: Mapping[Path, bytes]) -> None:
        self._contents = contents

    def covers(self, folder: Path) -> bool:
        """Whether what lies in `folder` counts as it was, not as it is."""
        return any(path.is_relative_to(folder) for path in self._contents)

    def check(self, folder: Path) -> None:
        """Raises `ToolError(QUARANTINED)` where a file below `folder` is not as it was. Reads them: call it before
        something of it is run, not at each look."""
        sealed = {path: data for path, data in self._contents.items() if path.is_relative_to(folder)}
        if not sealed:
            return
        for path in _files_below(folder) - sealed.keys():
            raise _changed(path, "was not there")
        for path, data in sealed.items():
            try:
                now = path.read_bytes()
            except OSError:
                raise _changed(path, "is gone") from None
            if now != data:
                raise _changed(path, "has changed")


def _files_below(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts}


def _changed(path: Path, what: str) -> ToolError:
    return ToolError(
        ErrorCode.QUARANTINED,
        f"{path} {what} since the user trusted it, or since this server began",
        "The user can look at it, and then trust it again (goat-mcp trust) or start the server anew.",
    )
