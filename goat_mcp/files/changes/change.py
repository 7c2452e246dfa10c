"""One change of one file, and the journal's records: one small file for each change, so that several processes need no
lock and damage stays small. The old contents lie in `blobs`."""

from __future__ import annotations

import json
import os
import re
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from goat_mcp.files.workspace import FileVersion, Workspace, WorkspacePath
from goat_mcp.files.workspace.opened_file import hash_of
from goat_mcp.state.private_file import TEMP_PREFIX, write_private

ABSENT = ""
"""Stands for the hash of a file that is not there."""
UNDO = "undo"
"""The `tool` of a change that put old bytes back."""


@dataclass(frozen=True, slots=True)
class Author:
    """Who changes something: the call, and behind it the session and the principal."""

    tool: str
    call_id: str
    session: str
    principal: str


@dataclass(frozen=True, slots=True)
class Content:
    """What a file held. `mode` are its permission bits, 0 if they do not matter."""

    sha256: str
    size: int
    mode: int = 0


def sha256_of(content: Content | FileVersion | None) -> str:
    return ABSENT if content is None else content.sha256


def version_of(content: Content | None) -> FileVersion | None:
    """The version to expect of a file that holds this; None if there is to be no file."""
    return None if content is None else FileVersion(content.sha256, content.size, 0)


def sha256_on_disk(workspace: Workspace, path: WorkspacePath) -> str:
    """Of what a file holds now; `ABSENT` if there is none. Blocking."""
    if workspace.stat(path) is None:
        return ABSENT
    with workspace.open_file(path) as file:
        return hash_of(file.fd)


@dataclass(frozen=True, slots=True)
class Change:
    """`before` or `after` is None if there was no file.

    `id` sorts by time. `undoes` is the id of the change this one took back. `not_kept` says why the old bytes are
    not in the journal, empty if they are.
    """

    id: str
    at_s: float
    author: Author
    path: Path
    root: Path
    before: Content | None
    after: Content | None
    undoes: str = ""
    not_kept: str = ""

    @property
    def kind(self) -> str:
        return "created" if self.before is None else "removed" if self.after is None else "changed"

    def to_json(self) -> bytes:
        fields = asdict(self)
        del fields["id"]
        # ASCII, so that the bytes of a name that is no text survive as escaped surrogates
        return json.dumps({"version": 1, **fields, "path": str(self.path), "root": str(self.root)}).encode()

    @classmethod
    def from_json(cls, id: str, data: bytes) -> Change:
        """Raises `ValueError`, `TypeError` or `KeyError` for what is no change."""
        fields = parse_record(data, "before", "after")
        fields["root"] = Path(fields["root"])
        return cls(id=id, **fields)


def parse_record(data: bytes, *contents: str) -> dict[str, Any]:
    """The members of a stored change; `contents` names those that are a `Content` or null.

    Raises `ValueError`, `TypeError` or `KeyError` for what is no such record.
    """
    fields = cast("dict[str, Any]", json.loads(data))
    if fields.pop("version") != 1:
        raise ValueError("written by another version")
    fields["author"], fields["path"] = Author(**fields["author"]), Path(fields["path"])
    for name in contents:
        fields[name] = None if fields[name] is None else Content(**fields[name])
    return fields


_NAME = re.compile(r"([0-9]{20}-[0-9a-f]{8})\.json")
_CORRUPT = ".corrupt"
LEFT_AFTER_S = 3600.0
"""Older temporary files were left by a killed process."""


class ChangeRecords:
    """Records by id in one private folder. One that cannot be read is set aside and reported to `warn`."""

    def __init__(self, folder: Path, warn: Callable[[Path], None] = lambda path: None) -> None:
        self._folder = folder
        self._warn = warn

    def new_id(self) -> str:
        return f"{time.time_ns():020d}-{secrets.token_hex(4)}"

    def store(self, change: Change) -> None:
        """Raises `OSError`."""
        write_private(self._path(change.id), change.to_json())

    def remove(self, id: str) -> None:
        with suppress(FileNotFoundError):
            self._path(id).unlink()

    def newest_first(self, since_s: float = 0.0, until_s: float = 1e10) -> list[Change]:
        """Those that were made in that time: others are not even read."""
        first, end = (f"{int(at_s * 1e9):020d}" for at_s in (since_s, until_s))
        found = (self._read(id) for id in sorted(self._ids(), reverse=True) if first <= id < end)
        return [change for change in found if change is not None]

    def clear_up(self) -> None:
        """Remove what killed writers left."""
        with os.scandir(self._folder) as entries:
            for entry in entries:
                with suppress(OSError):
                    if entry.name.startswith(TEMP_PREFIX) and time.time() - entry.stat().st_mtime > LEFT_AFTER_S:
                        Path(entry.path).unlink()

    def _ids(self) -> list[str]:
        try:
            names = os.listdir(self._folder)  # noqa: PTH208  # names are all that is wanted of thousands
        except FileNotFoundError:
            return []
        return [found.group(1) for name in names if (found := _NAME.fullmatch(name))]

    def _read(self, id: str) -> Change | None:
        path = self._path(id)
        try:
            return Change.from_json(id, path.read_bytes())
        except OSError:
            return None  # another process has removed it, or nobody may read it: not ours to set aside
        except (ValueError, TypeError, KeyError, AttributeError):
            with suppress(OSError):
                path.replace(path.with_name(f"{path.name}{_CORRUPT}"))
                self._warn(path)
            return None

    def _path(self, id: str) -> Path:
        return self._folder / f"{id}.json"
