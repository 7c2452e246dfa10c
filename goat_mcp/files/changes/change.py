"""One change of one file, as the journal remembers it. Storing it is the business of `records` and `blobs`."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

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
    """What a file held. `mode` are its permission bits, 0 where they do not matter."""

    sha256: str
    size: int
    mode: int = 0


@dataclass(frozen=True, slots=True)
class Change:
    """`before` or `after` is None where there was no file.

    `id` sorts by time. `undoes` is the id of the change this one took back. `not_kept` says why the old bytes are
    not in the journal, empty where they are.
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

    def to_json(self) -> bytes:
        fields = asdict(self)
        del fields["id"]
        # ASCII, so that the bytes of a name that is no text survive as escaped surrogates
        return json.dumps({"version": 1, **fields, "path": str(self.path), "root": str(self.root)}).encode()

    @classmethod
    def from_json(cls, id: str, data: bytes) -> Change:
        """Raises `ValueError`, `TypeError` or `KeyError` for what is no change."""
        fields = cast("dict[str, Any]", json.loads(data))
        if fields.pop("version") != 1:
            raise ValueError("written by another version")
        fields["author"] = Author(**fields["author"])
        fields["path"], fields["root"] = Path(fields["path"]), Path(fields["root"])
        for side in ("before", "after"):
            fields[side] = None if fields[side] is None else Content(**fields[side])
        return cls(id=id, **fields)
