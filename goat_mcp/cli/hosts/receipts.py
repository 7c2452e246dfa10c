"""What a host's file held before we wrote it: kept in the state directory, so that it can be put back byte for byte.

It holds whatever secrets the host's file holds: 0600, and nowhere near a repository.
"""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.file_edit import read_bytes
from goat_mcp.state.private_file import set_aside, write_private

FOLDER = "hosts"
_MAX_KEPT = 20
Why = Literal["move", "install"]


@dataclass(frozen=True)
class Receipt:
    """One writing of ours. `before` is None if there was no file."""

    host: str
    file: Path
    root: tuple[str, ...]
    before: bytes | None
    wrote_sha256: str
    written_at_s: float
    why: Why


class Receipts:
    """The writings of one host's file, the last one on top."""

    def __init__(self, state: StateDirectory, file: Path) -> None:
        self._state = state
        self.file = file
        digest = hashlib.sha256(str(file).encode("utf-8", "surrogatepass")).hexdigest()[:16]
        self._name = f"{digest}.json"

    @classmethod
    def stored(cls, state: StateDirectory, path: Path) -> Receipts | None:
        """Those that a file in the state directory holds; None if it is damaged or empty."""
        try:
            (*_, last) = json.loads(read_bytes(path) or b"[]")
            found = cls(state, Path(last["file"]))
        except (ValueError, KeyError, TypeError):
            return None
        return found if found.path == path else None

    @property
    def path(self) -> Path:
        return self._state.path / FOLDER / self._name

    def all(self) -> list[Receipt]:
        """Oldest first. A damaged file is set aside: nothing is put back that we cannot vouch for."""
        data = read_bytes(self.path)
        if data is None:
            return []
        try:
            found = [_receipt(entry) for entry in json.loads(data)]
        except (ValueError, KeyError, TypeError):
            set_aside(self.path)
            return []
        return [receipt for receipt in found if receipt.file == self.file]

    def note(self, receipt: Receipt) -> None:
        """Remember a writing before it is done. One on top of another of ours keeps what was there before both."""
        kept = self.all()
        was = None if receipt.before is None else sha256(receipt.before)
        if kept and kept[-1].wrote_sha256 == was and kept[-1].root == receipt.root:
            last = kept.pop()
            why: Why = "move" if "move" in (last.why, receipt.why) else "install"
            receipt = Receipt(
                last.host, last.file, last.root, last.before, receipt.wrote_sha256, receipt.written_at_s, why
            )
        self.keep([*kept, receipt][-_MAX_KEPT:])

    def drop_last(self) -> None:
        self.keep(self.all()[:-1])

    def keep(self, receipts: Sequence[Receipt]) -> None:
        """Make these all there are."""
        self._state.folder(FOLDER)
        entries = [_entry(receipt) for receipt in receipts]
        write_private(self.path, json.dumps(entries).encode(), outlasts_power=True)


def receipt(host: str, file: Path, root: Sequence[str], before: bytes | None, wrote: bytes, why: Why) -> Receipt:
    """The receipt of a writing that happens now."""
    return Receipt(host, file, tuple(root), before, sha256(wrote), time.time(), why)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _entry(receipt: Receipt) -> dict[str, Any]:
    return {
        "host": receipt.host,
        "file": str(receipt.file),
        "root": list(receipt.root),
        "before": None if receipt.before is None else base64.b64encode(receipt.before).decode(),
        "wrote_sha256": receipt.wrote_sha256,
        "written_at_s": receipt.written_at_s,
        "why": receipt.why,
    }


def _receipt(entry: Any) -> Receipt:
    fields = cast("dict[str, Any]", entry)
    before = fields["before"]
    return Receipt(
        fields["host"],
        Path(fields["file"]),
        tuple(fields["root"]),
        None if before is None else base64.b64decode(before, validate=True),
        fields["wrote_sha256"],
        float(fields["written_at_s"]),
        fields["why"],
    )
