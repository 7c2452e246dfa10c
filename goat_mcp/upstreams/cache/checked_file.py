"""A JSON file that is taken only as it was written: 0600, with a head that names its format and a checksum.

Reading is start-up time: standard library only. A file that does not hold is set aside and written anew later.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from goat_mcp.state.database import Warn
from goat_mcp.state.private_file import set_aside

T = TypeVar("T")


class CheckedFile(NamedTuple):
    """`head` says what the file is about; another head means another file."""

    head: str
    warn: Warn

    def read(self, path: Path, parse: Callable[[dict[str, Any]], T | None]) -> T | None:
        """None where nothing usable is stored; what is there but broken is renamed to `.corrupt`."""
        try:
            raw = path.read_bytes()
        except OSError:
            return None
        head, _, body = raw.partition(b"\n")
        try:
            if head.decode("ascii", "replace") == self._first_line(body):
                return parse(json.loads(body))
        except (ValueError, KeyError, TypeError, AttributeError):
            pass
        set_aside(path, self.warn)
        return None

    def write(self, path: Path, tree: Mapping[str, Any]) -> None:
        """Replace the file in one step. Raises `OSError`."""
        body = json.dumps(tree).encode("ascii")
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".catalog-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(self._first_line(body).encode("ascii") + b"\n" + body)
            Path(temporary).replace(path)
        except OSError:
            Path(temporary).unlink(missing_ok=True)
            raise

    def _first_line(self, body: bytes) -> str:
        return f"{self.head} {hashlib.sha256(body).hexdigest()}"
