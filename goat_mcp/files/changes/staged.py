"""The queue of changes that wait for a person: what is to become of a file, and what it was made from."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from goat_mcp.files.changes.blobs import WrongContent
from goat_mcp.files.changes.change import Author, Content, parse_record
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.private_file import write_private

_ID = re.compile(r"[0-9a-f]{8}\Z")


@dataclass(frozen=True, slots=True)
class StagedChange:
    """`base` is what the file held when the change was made, None if there was none; `after` what it is to hold,
    None if the file is to be deleted.

    A later change of the same session to the same file replaces this one, under another id: whoever reviewed
    this one has not reviewed that.
    """

    id: str
    at_s: float
    author: Author
    path: Path
    base: Content | None
    after: Content | None

    @property
    def kind(self) -> str:
        return "create" if self.base is None else "delete" if self.after is None else "change"


class StagedChanges:
    """The queue, in `review/` of the state directory, 0600. A record that cannot be read is set aside."""

    def __init__(self, state: StateDirectory, warn: Callable[[Path], None] = lambda path: None) -> None:
        self._state = state
        self._warn = warn

    @property
    def folder(self) -> Path:
        return self._state.folder("review")

    def add(self, author: Author, path: Path, base: Content | None, data: bytes | None) -> StagedChange:
        """`data` is None for a file that is to go. Raises `OSError`."""
        after = None if data is None else Content(hashlib.sha256(data).hexdigest(), len(data))
        staged = StagedChange(secrets.token_hex(4), time.time(), author, path, base, after)
        if data is not None:
            write_private(self.content_path(staged.id), data)
        fields = {"version": 1, **asdict(staged), "path": str(path)}
        write_private(self._record_path(staged.id), json.dumps(fields).encode())
        return staged

    def oldest_first(self) -> list[StagedChange]:
        found = [staged for path in self.folder.glob("*.json") if (staged := self.find(path.stem)) is not None]
        return sorted(found, key=lambda staged: (staged.at_s, staged.id))

    def find(self, id: str) -> StagedChange | None:
        if not _ID.match(id):
            return None
        path = self._record_path(id)
        try:
            return StagedChange(**parse_record(path.read_bytes(), "base", "after"))
        except OSError:
            return None
        except (ValueError, TypeError, KeyError, AttributeError):
            with suppress(OSError):
                path.replace(path.with_name(f"{path.name}.corrupt"))
                self._warn(path)
            return None

    def data(self, staged: StagedChange) -> bytes:
        """What the file is to hold; nothing if it is to be deleted. Raises `OSError`, or `WrongContent` if it was
        damaged."""
        if staged.after is None:
            return b""
        data = self.content_path(staged.id).read_bytes()
        if hashlib.sha256(data).hexdigest() != staged.after.sha256:
            raise WrongContent(str(staged.path))
        return data

    def content_path(self, id: str) -> Path:
        return self.folder / f"{id}.content"

    def remove(self, id: str) -> None:
        """Raises `OSError`, but not if it is gone already."""
        for path in (self._record_path(id), self.content_path(id)):  # a content without a record is nothing
            path.unlink(missing_ok=True)

    def prune(self, days: int) -> None:
        """Drop what nobody has decided about for `days`."""
        oldest_s = time.time() - days * 24 * 3600
        with suppress(OSError):
            for path in self.folder.iterdir():
                with suppress(OSError):
                    if path.stat().st_mtime < oldest_s:
                        path.unlink()

    def _record_path(self, id: str) -> Path:
        return self.folder / f"{id}.json"
