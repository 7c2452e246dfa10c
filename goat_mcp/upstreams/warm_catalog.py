"""What each upstream last listed, on disk: it answers `tools/list` before any upstream runs (LIF-2, ISO-4).

One file per upstream, 0600, checksummed and keyed by the entry's fingerprint. Reading is start-up time: standard
library only. A file that does not hold is set aside and rebuilt at the next connection.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from goat_mcp.state.database import Warn
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.private_file import no_warning, set_aside

_FORMAT = 3
_FINGERPRINT_CHARS = 16


@dataclass(frozen=True)
class StoredCatalog:
    """`version` is the protocol revision that was proved; empty if the connection left it open. `hashes` are those of
    the definitions that `entries` were made of, as `goat.lock` has them."""

    version: str
    entries: tuple[Mapping[str, Any], ...]
    hashes: tuple[str, ...] = ()


class WarmCatalog:
    """Reads and writes stored catalogs below the state directory."""

    def __init__(self, state: StateDirectory, warn: Warn = no_warning) -> None:
        self._state = state
        self._warn = warn

    def path(self, server: str, fingerprint: str) -> Path:
        return self._state.folder("catalog") / f"{server[:80]}-{fingerprint[:_FINGERPRINT_CHARS]}.json"

    def load(self, server: str, fingerprint: str) -> StoredCatalog | None:
        """None where nothing usable is stored; what is there but broken is renamed to `.corrupt`."""
        try:
            path = self.path(server, fingerprint)
            raw = path.read_bytes()
        except OSError:
            return None
        head, _, body = raw.partition(b"\n")
        if head.decode("ascii", "replace") != _head(fingerprint, body):
            return self._set_aside(path)
        try:
            stored: dict[str, Any] = json.loads(body)
            entries = cast("list[dict[str, Any]]", stored["tools"])
            return StoredCatalog(str(stored["version"]), tuple(entries), tuple(cast("list[str]", stored["hashes"])))
        except (ValueError, KeyError, TypeError):
            return self._set_aside(path)

    def stored_at_s(self, server: str, fingerprint: str) -> float | None:
        """When it was last written, in seconds since 1970: a list that did not change is not written again."""
        try:
            return self.path(server, fingerprint).stat().st_mtime
        except OSError:
            return None

    def _set_aside(self, path: Path) -> None:
        set_aside(path, self._warn)

    def store(self, server: str, fingerprint: str, catalog: StoredCatalog) -> None:
        """Replace the stored catalog in one step. Raises `OSError`."""
        path = self.path(server, fingerprint)
        document = {"version": catalog.version, "tools": list(catalog.entries), "hashes": list(catalog.hashes)}
        body = json.dumps(document).encode("ascii")
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".catalog-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(_head(fingerprint, body).encode("ascii") + b"\n" + body)
            Path(temporary).replace(path)
        except OSError:
            Path(temporary).unlink(missing_ok=True)
            raise


def _head(fingerprint: str, body: bytes) -> str:
    return f"goat-mcp-catalog {_FORMAT} {fingerprint} {hashlib.sha256(body).hexdigest()}"
