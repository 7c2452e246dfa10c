"""The definitions behind the hashes of `goat.lock`, as upstreams sent them: what stays listed, and what is compared.

One file per upstream, `pins/SERVER.json`, 0600. Every definition is checked against its hash when it is used, so
nothing here need be believed; one that is lost or does not hold is as good as none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, cast

from goat_mcp.state.database import Warn
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.private_file import no_warning, set_aside, write_private
from goat_mcp.upstreams.envelope import passing_meta


def definition_hash(definition: Any) -> str:
    """SHA-256 of canonical JSON (keys sorted, no blanks, ASCII), without the members that belong to the hop."""
    if isinstance(definition, dict) and "_meta" in definition:
        entry = cast("dict[str, Any]", definition)
        definition = {**entry, "_meta": passing_meta(entry["_meta"])}
    canonical = json.dumps(definition, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


class PinnedDefinitions:
    """Reads and writes definitions below the state directory. Nothing is kept in memory."""

    def __init__(self, state: StateDirectory, warn: Warn = no_warning) -> None:
        self._state = state
        self._warn = warn

    def path(self, server: str) -> Path:
        """Names that differ in case only are two files everywhere."""
        digest = hashlib.sha256(server.encode("utf-8", "surrogatepass")).hexdigest()
        return self._state.path / "pins" / f"{server[:80]}-{digest[:8]}.json"

    def are_kept(self, server: str) -> bool:
        return self.path(server).is_file()

    def some(self, server: str, hashes: Collection[str]) -> Mapping[str, Any]:
        """Those of the definitions that are there and hold."""
        stored = self._all(server)
        return {sha256: stored[sha256] for sha256 in hashes if _is(stored.get(sha256), sha256)}

    def keep(self, server: str, hashes: Collection[str], new: Mapping[str, Any]) -> None:
        """Have exactly the definitions of `hashes`, taken from `new` where they are not stored. Raises `OSError`.

        Only for who holds the lock of `goat.lock`.
        """
        stored = self._all(server)
        if set(hashes) == set(stored):
            return
        kept = {sha256: definition for sha256, definition in {**stored, **new}.items() if sha256 in hashes}
        self._state.folder("pins")
        write_private(self.path(server), json.dumps(kept).encode("ascii"))

    def _all(self, server: str) -> dict[str, Any]:
        path = self.path(server)
        try:
            stored = json.loads(path.read_bytes())
        except OSError:
            return {}
        except (ValueError, RecursionError):
            stored = None
        if not isinstance(stored, dict):
            set_aside(path, self._warn)
            return {}
        return cast("dict[str, Any]", stored)


def _is(definition: Any, sha256: str) -> bool:
    return definition is not None and definition_hash(definition) == sha256
