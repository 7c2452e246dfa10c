"""Which projects' settings files the user has trusted: path and exact content, in `trust.json` of the state directory.

A file that is damaged, or that somebody else could have written, stands for no trust at all (R-CRASH-1).
"""

from __future__ import annotations

import json
import time
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.file_lock import exclusive
from goat_mcp.state.file_safety import UnsafeFile, read_secret_file
from goat_mcp.state.private_file import TEMP_PREFIX, set_aside, write_private
from goat_mcp.state.trust import TRUST_FILE_NAME

_MAX_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True)
class Trusted:
    """One decision of the user: this content at this path. `sha256` covers the files it names, too."""

    path: str
    sha256: str
    trusted_at_s: float


class TrustStore:
    """The user's decisions, shared by all their goat-mcp processes."""

    def __init__(self, state: StateDirectory) -> None:
        self._state = state
        self.problems: list[str] = []
        """What was wrong with the file when it was read: then nothing is trusted."""

    @property
    def path(self) -> Path:
        return self._state.path / TRUST_FILE_NAME

    def all(self) -> list[Trusted]:
        """By path. Empty if the file is damaged, which is then set aside."""
        try:
            text = read_secret_file(self.path, max_bytes=_MAX_BYTES)
        except FileNotFoundError:
            return []
        except UnsafeFile as unsafe:
            self.problems.append(f"{self.path} {unsafe}; no project's settings are trusted")
            return []
        try:
            entries: list[dict[str, Any]] = json.loads(text)["trusted"]
            found = [Trusted(str(one["path"]), str(one["sha256"]), float(one["trusted_at_s"])) for one in entries]
        except (ValueError, KeyError, TypeError, RecursionError):
            aside = set_aside(self.path)
            where = f"; it is now {aside}" if aside is not None else ""
            self.problems.append(f"{self.path} is damaged{where}; no project's settings are trusted")
            return []
        return sorted(found, key=lambda one: one.path)

    def of(self, path: Path) -> Trusted | None:
        """What was trusted of the file at that path. A project that holds this very record could have brought it."""
        if self.path.resolve().is_relative_to(path.parent):
            if self.path.exists():
                self.problems.append(f"{self.path} lies in the project itself, so nothing of the project is trusted")
            return None
        return next((one for one in self.all() if one.path == str(path)), None)

    def trust(self, path: Path, sha256: str) -> None:
        """From now on, until it changes. Raises `OSError`."""
        with self._state.editing("trust"), self._locked():
            others = [one for one in self.all() if one.path != str(path)]
            self._write([*others, Trusted(str(path), sha256, time.time())])

    def revoke(self, path: Path) -> bool:
        """Whether it was trusted. Raises `OSError`."""
        with self._state.editing("trust"), self._locked():
            before = self.all()
            left = [one for one in before if one.path != str(path)]
            if len(left) < len(before):
                self._write(left)
        return len(left) < len(before)

    def _write(self, entries: list[Trusted]) -> None:
        document = {"trusted": [asdict(one) for one in entries]}
        for left in self._state.path.glob(f"{TEMP_PREFIX}{TRUST_FILE_NAME}.*"):
            left.unlink(missing_ok=True)  # a killed process's: we hold the lock
        data = (json.dumps(document, indent=1) + "\n").encode("ascii")
        write_private(self.path, data, outlasts_power=True)

    def _locked(self) -> AbstractContextManager[None]:
        """Alone among our processes: of two decisions at a time none is lost."""
        return exclusive(self._state.folder() / "trust.lock")
