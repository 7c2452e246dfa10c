"""The order of search results in force: the built-in one, or another that a user has put into a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from goat_mcp.files.search.priority_order import PriorityOrder


class SearchPriority:
    """The order in force: the built-in one, or what the first file that is there makes of it, read when it changed."""

    def __init__(self, files: Sequence[Path] = ()) -> None:
        self._files = files
        self._known: tuple[tuple[Any, ...], PriorityOrder] = ((), PriorityOrder())

    def order(self) -> PriorityOrder:
        """Blocking; may be asked in several threads."""
        for path in self._files:
            try:
                found = os.stat(path)  # noqa: PTH116  # before each search
            except (OSError, ValueError):
                continue
            identity = (path, found.st_mtime_ns, found.st_size, found.st_ino)
            known, order = self._known
            if known != identity:
                # Most users have none, and then nothing of this is loaded.
                from goat_mcp.files.search.priority_file import read_order

                order = read_order(path, PriorityOrder())
                self._known = (identity, order)
            return order
        return PriorityOrder()
