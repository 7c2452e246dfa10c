"""Which files below visible directories the user's rules let no command read or change, for the sandbox."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from goat_mcp.commands.sandbox.git_directories import entries_of

_ENTERED_LAST = frozenset({"node_modules", ".venv", "venv", "site-packages", "__pycache__", ".git", "target", "dist"})
_MAX_FOUND = 200
_SCAN_S = 0.1
_REST_FACTOR = 10
"""A scan that took 1 ms is good for 10 ms."""


class HiddenSearch:
    """`hides` judges an absolute path; `exactly` are paths that rules name without a wildcard. Blocking.

    Paths near the top are found first: at most 200, in at most 100 ms. A link cannot be hidden, since nothing can be
    mounted on it; its target is.
    """

    def __init__(
        self, hides: Callable[[str], bool], exactly: Callable[[], Sequence[Path]], *, scan_s: float = _SCAN_S
    ) -> None:
        self._hides = hides
        self._exactly = exactly
        self._scan_s = scan_s
        self._known: dict[tuple[Path, ...], tuple[float, tuple[Path, ...]]] = {}

    def below(self, directories: Sequence[Path]) -> tuple[Path, ...]:
        """Real paths of what exists, from a moment ago if the search takes long."""
        key, now_s = tuple(directories), time.monotonic()
        good_until_s, found = self._known.get(key, (0.0, ()))
        if now_s >= good_until_s:
            found = self._scan(directories, now_s + self._scan_s)
            took_s = time.monotonic() - now_s
            self._known[key] = (time.monotonic() + _REST_FACTOR * took_s, found)
        named = (Path(os.path.realpath(path)) for path in self._exactly() if os.path.exists(path))  # noqa: PTH110  # `Path` raises for what may not be looked at
        return tuple(dict.fromkeys((*named, *found)))

    def _scan(self, directories: Sequence[Path], until_s: float) -> tuple[Path, ...]:
        found: list[Path] = []
        waiting, last = deque(map(str, directories)), deque[str]()
        while waiting or last:
            folder = waiting.popleft() if waiting else last.popleft()
            for entry in entries_of(folder):
                if len(found) >= _MAX_FOUND or time.monotonic() > until_s:
                    return tuple(found)
                if self._hides(entry.path):
                    found.append(Path(os.path.realpath(entry.path)))
                elif entry.is_dir(follow_symlinks=False):
                    (last if entry.name in _ENTERED_LAST else waiting).append(entry.path)
        return tuple(found)
