"""What each upstream last listed, on disk: it answers before any upstream runs (LIF-2, ISO-4).

Two files per upstream: its tools are read at every start, the rest when somebody asks for it. Each is 0600, with a head
that names its format and a checksum; a file that does not match is set aside and written again later. Reading is
start-up time: standard library only.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from goat_mcp.catalog.schemas.dialects import RULES_VERSION
from goat_mcp.files.documents.visible_text import VISIBLE_RULES
from goat_mcp.state.database import Warn
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.own_file import replace_own
from goat_mcp.state.private_file import no_warning, set_aside
from goat_mcp.upstreams.config.entry import UpstreamConfig
from goat_mcp.upstreams.status import ReasonCode, RejectedEntry

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
            replace_own(Path(temporary), path)
        except OSError:
            Path(temporary).unlink(missing_ok=True)
            raise

    def _first_line(self, body: bytes) -> str:
        return f"{self.head} {hashlib.sha256(body).hexdigest()}"


_ASKS_SUFFIX = ".asks"
_ERAS_SUFFIX = ".eras"
_FOLDER = "catalog"
_FORMAT = 3
_ITEMS_FORMAT = 2
_FINGERPRINT_CHARS = 16

Entries = tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class StoredCatalog:
    """`version` is the protocol revision that was proved; empty if the connection left it open. `hashes` are those of
    the definitions that `entries` were made of, as `goat.lock` has them; `rejected` is what else it listed, and why
    that is of no use. `plain` says of each entry whether every host takes it as it is (`schemas.portable`); it is empty
    where that was found out by other rules than ours, or not at all."""

    version: str
    entries: Entries
    hashes: tuple[str, ...] = ()
    rejected: tuple[RejectedEntry, ...] = ()
    plain: tuple[bool, ...] = ()


@dataclass(frozen=True)
class StoredItems:
    """What an upstream offers beside tools, as it came; and whether it tells of changed resources, and completes.

    `ttl_ms` has, for each kind it offers at all, how long that list stays fresh; `hashes`, by kind and by what an entry
    is known by, those of the definitions that `goat.lock` speaks of.
    """

    resources: Entries = ()
    templates: Entries = ()
    prompts: Entries = ()
    ttl_ms: Mapping[str, int] = field(default_factory=dict[str, int])
    subscribes: bool = False
    hashes: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])


class WarmCatalog:
    """Reads and writes stored catalogs below the state directory."""

    def __init__(self, state: StateDirectory, warn: Warn = no_warning) -> None:
        self._state = state
        self._warn = warn

    def path(self, server: str, fingerprint: str) -> Path:
        return self._state.path / _FOLDER / f"{server[:80]}-{fingerprint[:_FINGERPRINT_CHARS]}.json"

    def asks(self, server: str, fingerprint: str) -> bool:
        """Whether it was noted that this upstream asks clients."""
        return self.path(server, fingerprint).with_suffix(_ASKS_SUFFIX).exists()

    def note_asks(self, server: str, fingerprint: str) -> None:
        """Remember that it asks: from the next start on each client has a connection of its own at once."""
        with suppress(OSError):
            self._state.folder(_FOLDER)
            self.path(server, fingerprint).with_suffix(_ASKS_SUFFIX).touch(mode=0o600)

    def eras(self, server: str, fingerprint: str) -> Mapping[str, bool]:
        """Which eras of the protocol it was proved to speak, or not to."""
        try:
            noted: Any = json.loads(self.path(server, fingerprint).with_suffix(_ERAS_SUFFIX).read_bytes())
        except (OSError, ValueError):
            return {}
        known = cast("dict[str, Any]", noted) if isinstance(noted, dict) else {}
        return {era: speaks for era, speaks in known.items() if isinstance(speaks, bool)}

    def note_eras(self, server: str, fingerprint: str, known: Mapping[str, bool]) -> None:
        """Remember that: from the next start on nothing is tried for it."""
        path = self.path(server, fingerprint).with_suffix(_ERAS_SUFFIX)
        with suppress(OSError):
            self._state.folder(_FOLDER)
            descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".eras-")
            with os.fdopen(descriptor, "w") as file:
                json.dump(dict(known), file)
            replace_own(Path(temporary), path)

    def items_path(self, server: str, fingerprint: str) -> Path:
        return self.path(server, fingerprint).with_suffix(".items.json")

    def load(self, server: str, fingerprint: str) -> StoredCatalog | None:
        """None where nothing usable is stored; what is there but broken is renamed to `.corrupt`.

        Entries that were made visible by other rules than ours are of no use: nobody has looked for what hides in them.
        """

        def parsed(stored: dict[str, Any]) -> StoredCatalog | None:
            if stored.get("visible") != VISIBLE_RULES:
                return None
            entries = _entries(stored["tools"])
            return StoredCatalog(
                str(stored["version"]),
                entries,
                tuple(map(str, stored["hashes"])),
                tuple(_rejected(one) for one in _entries(stored.get("rejected", []))),
                _plain(stored.get("plain"), len(entries)),
            )

        return self._file(_FORMAT, fingerprint).read(self.path(server, fingerprint), parsed)

    def stored_at_s(self, server: str, fingerprint: str) -> float | None:
        """When it was last written, in seconds since 1970: a list that did not change is not written again."""
        try:
            return self.path(server, fingerprint).stat().st_mtime
        except OSError:
            return None

    def store(self, server: str, fingerprint: str, catalog: StoredCatalog) -> None:
        """Replace the stored catalog in one step. Raises `OSError`."""
        tree = {
            "visible": VISIBLE_RULES,
            "version": catalog.version,
            "tools": list(catalog.entries),
            "hashes": list(catalog.hashes),
            "rejected": [{"name": one.name, "reason": one.reason, "code": one.reason_code} for one in catalog.rejected],
            "plain": {"rules": RULES_VERSION, "of": list(catalog.plain)},
        }
        self._state.folder(_FOLDER)
        self._file(_FORMAT, fingerprint).write(self.path(server, fingerprint), tree)

    def load_items(self, server: str, fingerprint: str) -> StoredItems | None:
        """As `load`."""

        def parsed(stored: dict[str, Any]) -> StoredItems | None:
            if stored.get("visible") != VISIBLE_RULES:
                return None
            return StoredItems(
                resources=_entries(stored["resources"]),
                templates=_entries(stored["templates"]),
                prompts=_entries(stored["prompts"]),
                ttl_ms={str(kind): int(ttl) for kind, ttl in stored["ttl_ms"].items()},
                subscribes=bool(stored["subscribes"]),
                hashes={
                    str(kind): {str(key): str(sha256) for key, sha256 in named.items()}
                    for kind, named in stored["hashes"].items()
                },
            )

        return self._file(_ITEMS_FORMAT, fingerprint).read(self.items_path(server, fingerprint), parsed)

    def store_items(self, server: str, fingerprint: str, items: StoredItems) -> None:
        """As `store`."""
        tree = {
            "visible": VISIBLE_RULES,
            "resources": list(items.resources),
            "templates": list(items.templates),
            "prompts": list(items.prompts),
            "ttl_ms": dict(items.ttl_ms),
            "subscribes": items.subscribes,
            "hashes": {kind: dict(named) for kind, named in items.hashes.items()},
        }
        self._state.folder(_FOLDER)
        self._file(_ITEMS_FORMAT, fingerprint).write(self.items_path(server, fingerprint), tree)

    def _file(self, format: int, fingerprint: str) -> CheckedFile:
        return CheckedFile(f"goat-mcp-catalog {format} {fingerprint}", self._warn)


def _rejected(stored: Mapping[str, Any]) -> RejectedEntry:
    return RejectedEntry(str(stored["name"]), str(stored["reason"]), ReasonCode(stored["code"]))


def _plain(stored: Any, count: int) -> tuple[bool, ...]:
    """Versions before ours stored none, and versions after ours may have other rules."""
    noted = cast("dict[str, Any]", stored) if isinstance(stored, dict) else {}
    of: Any = noted.get("of") if noted.get("rules") == RULES_VERSION else None
    if not isinstance(of, list) or len(listed := cast("list[Any]", of)) != count:
        return ()
    return tuple(one is True for one in listed)


def _entries(stored: Any) -> Entries:
    if not isinstance(stored, list) or not all(isinstance(entry, dict) for entry in cast("list[Any]", stored)):
        raise TypeError("no list of entries")
    return tuple(cast("list[dict[str, Any]]", stored))


class KnownAsks:
    """Whether one upstream has ever asked a client anything, remembered over restarts."""

    def __init__(self, config: UpstreamConfig, warm: WarmCatalog) -> None:
        self._config = config
        self._warm = warm
        self._known: bool | None = None

    def has_asked(self) -> bool:
        if self._known is None:
            self._known = self._warm.asks(self._config.server, self._config.fingerprint)
        return self._known

    def learn(self) -> None:
        if not self.has_asked():
            self._known = True
            self._warm.note_asks(self._config.server, self._config.fingerprint)
