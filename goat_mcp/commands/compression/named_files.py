"""Whether a name that a program printed is a file's: what tells a name's end where its text does not."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class NamedFiles:
    """As seen from where the program ran; None: nobody knows where that was."""

    directory: str | None = None
    _known: dict[str, bool] = field(default_factory=dict[str, bool])

    def only_one(self, names: Sequence[str]) -> int | None:
        """Which of the names is a file; None where there is none, or more than one."""
        found = [at for at, name in enumerate(names) if self._is_file(name)]
        return found[0] if len(found) == 1 else None

    def _is_file(self, name: str) -> bool:
        if self.directory is None:
            return False
        if name not in self._known:
            try:
                mode = os.stat(os.path.join(self.directory, name)).st_mode  # noqa: PTH116, PTH118  # for each line anew
            except (OSError, ValueError):
                mode = 0
            self._known[name] = stat.S_ISREG(mode)
        return self._known[name]
