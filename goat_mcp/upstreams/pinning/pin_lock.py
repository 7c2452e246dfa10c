"""`goat.lock`: what was pinned and what waits for approval, by hash; and the definitions themselves (PIN-1, R-UP-6).

One lock file for all processes of a user: every change is made under a lock, on what the file holds at that moment, and
replaces it whole. The definitions are in one file per upstream, `pins/SERVER.json`, 0600. Each is checked against its
hash when it is used, so nothing there need be believed. Reading is start-up time: standard library only. What follows
from the pins is decided by `UpstreamPins`.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, cast

from goat_mcp.state.database import Warn
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.file_lock import exclusive
from goat_mcp.state.private_file import no_warning, set_aside, write_private
from goat_mcp.upstreams.envelope import passing_meta

FILE_NAME = "goat.lock"
_FORMAT = 1
_HEAD = "goat-mcp-lock"
DAMAGED = f"{FILE_NAME} was damaged and set aside as {FILE_NAME}.corrupt"


class Pin(NamedTuple):
    """One definition. `sha256` is that of its canonical JSON, `risk` what calls of it were thought to risk."""

    sha256: str
    risk: str = ""


Named = dict[str, Pin]
"""Native name -> pin. Instructions have the empty name."""


@dataclass
class ServerPins:
    """What the lock holds of one upstream. `waiting` are definitions seen last that differ from the pinned ones, or
    that nobody approved yet; `launch` and `waiting_launch` are fingerprints of how it is started."""

    launch: str = ""
    waiting_launch: str = ""
    pins: dict[str, Named] = field(default_factory=dict[str, Named])
    waiting: dict[str, Named] = field(default_factory=dict[str, Named])

    def pin(self, kind: str, name: str) -> Pin | None:
        return self.pins.get(kind, {}).get(name)

    @property
    def count(self) -> int:
        return sum(map(len, self.pins.values()))

    def hashes(self) -> set[str]:
        """Of every definition that must be kept."""
        return {pin.sha256 for kinds in (self.pins, self.waiting) for named in kinds.values() for pin in named.values()}


@dataclass
class LockContent:
    """The file at one moment. `distrust` says why nothing new is trusted unseen; empty as a rule."""

    servers: dict[str, ServerPins] = field(default_factory=dict[str, ServerPins])
    distrust: str = ""

    def of(self, server: str) -> ServerPins:
        """Its pins; those of nobody where it was never seen."""
        return self.servers.get(server) or ServerPins()


@dataclass
class _Change:
    """An edit of the lock, and what became of it."""

    edit: Callable[[LockContent], None]
    result: LockContent | Exception | None = None

    def is_made_in(self, content: LockContent) -> bool:
        try:
            self.edit(content)
        except Exception as problem:  # its own caller hears of it, and not those of the other changes
            self.result = problem
            return False
        return True


class PinLock:
    """The lock file of a state directory. `content` is for readers, who must not change it; `change` for writers.

    A file that does not hold is set aside; what was pinned is then unknown, and what comes next is not trusted at first
    sight: it waits for approval like a change.
    """

    def __init__(self, state: StateDirectory, warn: Warn = no_warning) -> None:
        self._state = state
        self.path = state.path / FILE_NAME  # kept: each call looks twice, and making a path costs more than the look
        self._looked_at = str(self.path)
        self._warn = warn
        self._mutex = threading.Lock()
        self._waiting: deque[_Change] = deque()
        self._seen: tuple[int, int, int] | None = None
        self._content = LockContent()
        self.only_compares = False
        """Whether what is new stays in memory: nothing is written, and what others write is not seen."""

    def content(self) -> LockContent:
        """What the file holds now. Looks at its stat each time and reads it when that has changed."""
        if self.only_compares:
            return self._content
        seen = self._stat()
        if seen != self._seen:
            try:
                self._content = self._read()
            except OSError as problem:
                self._warn("goat.lock cannot be read", path=str(self.path), problem=str(problem))
                self._content = LockContent(distrust=f"{FILE_NAME} cannot be read: {problem.strerror or problem}")
            self._seen = seen
        return self._content

    def change(self, edit: Callable[[LockContent], None]) -> LockContent:
        """Edit what the file holds now, and store it. Raises `OSError`, and what `edit` raises; it may run twice.

        Blocks: for a worker thread.
        """
        if self.only_compares:
            with self._mutex:
                content = copy.deepcopy(self._content)
                edit(content)
                self._content = content
                return content
        mine = _Change(edit)
        self._waiting.append(mine)
        with self._mutex:
            if mine.result is None:
                # All that wait by now are written at once: many upstreams are seen for the first time together.
                together: list[_Change] = []
                while self._waiting:
                    together.append(self._waiting.popleft())
                self._write(together)
        if isinstance(mine.result, Exception):
            raise mine.result
        assert mine.result is not None
        return mine.result

    def _write(self, changes: list[_Change]) -> None:
        """Each of them has a result then: what the file holds now, or why it is not in the file."""
        try:
            with self._state.editing("pins"), exclusive(self._state.folder() / f"{FILE_NAME}.lock"):
                while changes:
                    content = self._read()
                    if content.distrust == DAMAGED and self.path.exists():
                        self._set_aside()
                    if all(one.is_made_in(content) for one in changes):
                        break
                    # The one that could not be made may have made a half of it.
                    changes = [one for one in changes if one.result is None]
                else:
                    return
                write_private(self.path, _written(content), outlasts_power=True)
                self._content, self._seen = content, self._stat()
                for one in changes:
                    one.result = content
        except Exception as problem:  # whoever waits for a change hears why it was not stored
            for one in changes:
                one.result = problem

    def _set_aside(self) -> None:
        """Copied, not moved: were we killed between the two, no lock at all would be a first start."""
        try:
            raw = self.path.read_bytes()
            if not _holds(raw):
                write_private(self.path.with_name(f"{FILE_NAME}.corrupt"), raw)
        except OSError as problem:
            self._warn("the damaged lock could not be set aside", path=str(self.path), problem=str(problem))

    def _stat(self) -> tuple[int, int, int] | None:
        try:
            found = os.stat(self._looked_at)  # noqa: PTH116  # as it is for each call; a `Path` takes twice as long
        except OSError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns

    def _read(self) -> LockContent:
        try:
            raw = self.path.read_bytes()
        except FileNotFoundError:
            return LockContent()
        if not _holds(raw):
            self._warn("goat.lock is damaged: what upstreams offer waits for approval", path=str(self.path))
            return LockContent(distrust=DAMAGED)
        return _parsed(raw)


def _written(content: LockContent) -> bytes:
    document: dict[str, Any] = {
        "distrust": content.distrust,
        "servers": {
            server: {
                "launch": pins.launch,
                "waiting_launch": pins.waiting_launch,
                "pins": pins.pins,
                "waiting": {kind: named for kind, named in pins.waiting.items() if named},
            }
            for server, pins in content.servers.items()
        },
    }
    # One line each, so that two versions of it can be compared by eye.
    body = json.dumps(document, indent=0).encode("ascii")
    return f"{_HEAD} {_FORMAT} {hashlib.sha256(body).hexdigest()}\n".encode("ascii") + body + b"\n"


def _holds(raw: bytes) -> bool:
    head, _, body = raw.partition(b"\n")
    digest = hashlib.sha256(body.removesuffix(b"\n")).hexdigest()
    return body.endswith(b"\n") and head == f"{_HEAD} {_FORMAT} {digest}".encode("ascii")


def _parsed(raw: bytes) -> LockContent:
    """Of a file whose checksum holds: we wrote it."""
    document: dict[str, Any] = json.loads(raw.partition(b"\n")[2])
    servers = cast("dict[str, dict[str, Any]]", document["servers"])
    return LockContent(
        {
            server: ServerPins(
                launch=one["launch"],
                waiting_launch=one["waiting_launch"],
                pins=_kinds(one["pins"]),
                waiting=_kinds(one["waiting"]),
            )
            for server, one in servers.items()
        },
        document["distrust"],
    )


def _kinds(kinds: Mapping[str, Mapping[str, list[str]]]) -> dict[str, Named]:
    return {kind: {name: Pin(*pin) for name, pin in named.items()} for kind, named in kinds.items()}


def definition_hash(definition: Any) -> str:
    """SHA-256 of canonical JSON (keys sorted, no blanks, ASCII), without the members that belong to the hop, and those
    that only one era has: a server of both lists the same in each (ERA-2b)."""
    if isinstance(definition, dict):
        entry = cast("dict[str, Any]", definition)
        # `execution` is of 2025-11-25; servers of the SDK leave nulls out in 2026-07-28.
        definition = {name: value for name, value in entry.items() if name != "execution"}
        if "_meta" in entry:
            meta = passing_meta(entry["_meta"])
            definition["_meta"] = {name: value for name, value in meta.items() if value is not None}
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
