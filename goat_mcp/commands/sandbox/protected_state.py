"""Protected paths before and after a program that could not be kept from them: what it did there is said at least.

Only tells; nothing is put back, since a person's own change in the meantime looks the same.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from goat_mcp.commands.sandbox.watched_folder import WatchedFolder

_MAX_ENTRIES = 2000
"""Of a protected directory. `.git/hooks` and editors' folders have some dozens."""
_MAX_SHOWN = 5

_Mark = tuple[int, int, int, int] | None
"""What changes with a file, its ctime among it, which no program can set back; None for one that is not there."""


@dataclass(frozen=True)
class ProtectedState:
    """How protected files and directories were when this was made; `watched` are such in which some may be new."""

    marks: dict[Path, dict[Path, _Mark]]
    watched: tuple[WatchedFolder, ...] = ()

    @classmethod
    def of(cls, paths: Iterable[Path], watched: Iterable[WatchedFolder] = ()) -> ProtectedState:
        return cls({path: dict(_marks(path)) for path in paths}, tuple(watched))

    def changes(self) -> tuple[str, ...]:
        """One line on what is different now; none where nothing is."""
        changed = [str(path) for path, before in self.marks.items() if dict(_marks(path)) != before]
        new = (str(one.path / name) for one in self.watched for name in one.new_names())
        changed.extend(path for path in new if path not in changed)
        if not changed:
            return ()
        more = f" and {len(changed) - _MAX_SHOWN} more" if len(changed) > _MAX_SHOWN else ""
        return (
            f"changed while the command ran: {', '.join(changed[:_MAX_SHOWN])}{more}. These are protected, but "
            "Landlock cannot keep a command from them: look at them before anything obeys them",
        )


def _marks(path: Path) -> Iterator[tuple[Path, _Mark]]:
    left = _MAX_ENTRIES
    waiting = [path]
    while waiting and left > 0:
        one = waiting.pop()
        left -= 1
        try:
            status = one.lstat()
        except OSError:
            yield one, None
            continue
        yield one, (status.st_mode, status.st_ino, status.st_size, status.st_ctime_ns)
        if one.is_dir() and not one.is_symlink():
            try:
                waiting += sorted(Path(one, name) for name in os.listdir(one))  # noqa: PTH208  # names are all it needs
            except OSError:
                continue
