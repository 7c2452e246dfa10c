"""What may be shown and called of one upstream's definitions: trust on first use (design D12, PIN-1, R-UP-6).

Kinds are `tool`, `prompt`, `template`, `skill` and `instructions`; a definition is what the upstream sent, before
anything of ours was done to it. What is pinned is in `PinLock`; when to list is the supervisor's business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import anyio.to_thread

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.names import SEPARATOR, UPSTREAM_PREFIX
from goat_mcp.files.documents.visible_text import make_visible
from goat_mcp.state.telemetry import Telemetry
from goat_mcp.upstreams.config.entry import UpstreamConfig
from goat_mcp.upstreams.pinning.pin_lock import LockContent, Pin, PinLock, PinnedDefinitions, ServerPins
from goat_mcp.upstreams.status import ReasonCode, RejectedEntry

Kind = Literal["tool", "prompt", "template", "skill", "instructions"]
MAX_PINS = 20_000
"""Definitions of one upstream, waiting ones too. What comes after them is not shown: a lock must not grow for ever."""
_NAMES_SHOWN = 10


@dataclass(frozen=True)
class ReceivedDefinition:
    """One definition as the upstream lists it now. `entry` is what we make of it, `original` what it sent; None where
    that is not at hand, as in a catalog of an earlier run. Without a hash it is shown only if nothing is pinned.
    `is_plain`: it is known that every host takes `entry` as it is."""

    name: str
    sha256: str
    entry: Mapping[str, Any]
    original: Mapping[str, Any] | None = None
    risk: str = ""
    is_plain: bool = False


@dataclass(frozen=True)
class Shown:
    """An entry for clients and the hash of the definition it is made of. `is_plain`: see `ReceivedDefinition`."""

    entry: Mapping[str, Any]
    pin: str
    is_plain: bool = False


@dataclass(frozen=True)
class View:
    """What clients may see. `quarantined` are listed as they were pinned, `rejected` are not listed at all."""

    shown: tuple[Shown, ...]
    quarantined: tuple[str, ...] = ()
    rejected: tuple[RejectedEntry, ...] = ()


@dataclass(frozen=True)
class Pinning:
    """What all upstreams of a process share."""

    lock: PinLock
    definitions: PinnedDefinitions


@dataclass
class UpstreamPins:
    """The pins of one upstream. `usable` makes entries of definitions that were pinned, as listing does."""

    config: UpstreamConfig
    lock: PinLock
    definitions: PinnedDefinitions
    telemetry: Telemetry
    _seen: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    _unsaved: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    """What could not be written to the lock: pinned for this process."""
    problem: str = ""
    _looked_at: dict[Kind, object] = field(default_factory=dict["Kind", object])
    """What the last view of each kind was made of."""
    _first_seen: list[tuple[Kind, ReceivedDefinition]] = field(default_factory=list["tuple[Kind, ReceivedDefinition]"])
    """What has become known since somebody looked at its texts."""

    @property
    def is_off(self) -> bool:
        return self.config.pin == "off"

    def view(
        self,
        kind: Kind,
        seen: Sequence[ReceivedDefinition],
        usable: Callable[[Mapping[str, Any]], Mapping[str, Any] | None],
    ) -> View:
        """What to show for `seen`, as the lock stands now. Reads definitions only where one has changed."""
        self.hold(kind, seen)
        if not self.is_off:
            self._looked_at[kind] = self._looks_like(self.lock.content(), kind)
        return self.look(kind, seen, usable)

    def hold(self, kind: Kind, seen: Sequence[ReceivedDefinition]) -> None:
        """From now on this is what the upstream offers, and what calls are held against."""
        self._seen[kind] = {name: one.sha256 for name, one in _by_name(seen).items() if one.sha256}

    def look(
        self,
        kind: Kind,
        seen: Sequence[ReceivedDefinition],
        usable: Callable[[Mapping[str, Any]], Mapping[str, Any] | None],
    ) -> View:
        """As `view`, of what calls are not held against."""
        if self.is_off:
            return View(tuple(Shown(one.entry, one.sha256, one.is_plain) for one in seen))
        content = self.lock.content()
        pins = content.of(self.config.server)
        pinned = {one.name: self._pin(pins, kind, one.name) for one in seen}
        changed = {one.name: pin for one in seen if (pin := pinned[one.name]) and pin != one.sha256}
        kept: Mapping[str, Any] = {}
        if changed:
            kept = self.definitions.some(self.config.server, set(changed.values()))
        shown: list[Shown] = []
        rejected: list[RejectedEntry] = []
        for one in seen:
            pin = pinned[one.name]
            if pin == one.sha256 or (pin is None and not self._must_wait(content) and pins.count < MAX_PINS):
                shown.append(Shown(one.entry, one.sha256, one.is_plain))
                continue
            if pin is None:
                rejected.append(self._rejected(kind, one.name, self._waits(content)))
                continue
            entry = usable(kept[pin]) if pin in kept else None
            if entry is None:
                rejected.append(self._rejected(kind, one.name, _LOST))
            else:
                shown.append(Shown(entry, pin))
        quarantined = tuple(make_visible(one.name[:200]) for one in seen if one.sha256 and one.name in changed)
        return View(tuple(shown), quarantined, tuple(rejected))

    def is_outdated(self, kind: Kind) -> bool:
        """Whether another look might show something else: somebody has changed the lock since."""
        return kind in self._looked_at and self._looked_at[kind] != self._looks_like(self.lock.content(), kind)

    def _looks_like(self, content: LockContent, kind: Kind) -> object:
        """What a view depends on."""
        pins = content.of(self.config.server)
        return content.distrust, pins.pins.get(kind, {}), pins.count < MAX_PINS

    def settle(self, kind: Kind, seen: Sequence[ReceivedDefinition], launch: str) -> None:
        """Pin what is seen for the first time, and note what has changed. Blocks: for a worker thread."""
        if self.is_off:
            return
        first = _by_name(seen)
        content = self.lock.content()
        if not self._must_write(content, kind, first, launch):
            return
        notes: list[str] = []
        new: list[str] = []

        def edit(content: LockContent) -> None:
            pins = content.servers.setdefault(self.config.server, ServerPins())
            known = pins.hashes()
            new[:] = [name for name, one in first.items() if one.sha256 not in known]
            notes[:] = self._merge(content, pins, kind, first, launch)
            originals = {one.sha256: one.original for one in first.values() if one.original is not None}
            if not self.lock.only_compares:
                self.definitions.keep(self.config.server, pins.hashes(), originals)

        try:
            self.lock.change(edit)
        except OSError as problem:
            self._pin_unsaved(kind, first)
            self.problem = f"pins are not stored: {problem}"
            self.telemetry.warning("pins not stored", upstream=self.config.name, problem=str(problem))
            return
        self._first_seen.extend((kind, first[name]) for name in new)
        self._unsaved.pop(kind, None)
        self.problem = ""
        if notes:
            self.telemetry.warning("upstream definitions", upstream=self.config.name, what="; ".join(notes))

    async def scan_first_sights(self) -> None:
        """Report what is suspicious in what has become known since. What waits for a list need not wait for this."""
        if self._first_seen:
            first, self._first_seen = self._first_seen, []
            await anyio.to_thread.run_sync(self._scan, first)

    def _scan(self, first: Sequence[tuple[Kind, ReceivedDefinition]]) -> None:
        from goat_mcp.upstreams.listing.suspicious_texts import are_unsuspicious, why_suspicious

        if are_unsuspicious([one.original for _, one in first], self.config.server):
            return
        found: dict[str, tuple[str, ...]] = {}
        for kind, one in first:
            if why := why_suspicious(one.original, self.config.server):
                found[f"{kind} {one.name}".strip()] = why
        if found:
            self.telemetry.warning(
                "upstream definitions are suspicious",
                upstream=self.config.name,
                what=_some(found).removeprefix(": "),
                why="; ".join(dict.fromkeys(each for why in found.values() for each in why)),
                see=f"goat-mcp lock show {self.config.server}",
            )

    def check(self, kind: Kind, name: str, pin: str, own: str = "") -> None:
        """Raises `ToolError(QUARANTINED)` unless the upstream's definition is the pinned one and `pin` is its hash.

        `own` is the hash of what the process lists that serves the caller alone, if there is one.
        """
        if self.is_off:
            return
        content = self.lock.content()
        pins = content.of(self.config.server)
        pinned = self._pin(pins, kind, name)
        seen = own or self._seen.get(kind, {}).get(name, pinned or pin)
        if pinned is None and self._must_wait(content):
            raise self._quarantined(kind, name, self._waits(content))
        if (pinned or pin) != seen:
            raise self._quarantined(kind, name, "its upstream has changed its definition since it was pinned")
        if pin and seen != pin:
            raise self._quarantined(
                kind,
                name,
                "its definition is no longer the one that was listed when this call was made",
                "List the tools again, and call it as it is defined now.",
            )
        if self.config.pin == "strict" and pins.waiting_launch:
            raise self._quarantined(kind, name, "its upstream is launched in another way than was approved")

    def admit(self, kind: Kind, name: str) -> None:
        """As `check`, for what clients name without saying which definition they know."""
        self.check(kind, name, self._seen.get(kind, {}).get(name, ""))

    def why_rejected(self, kind: Kind, name: str) -> ToolError | None:
        """The error for a definition that is there and that clients do not see because of its pin."""
        if self.is_off:
            return None
        content = self.lock.content()
        pin = self._pin(content.of(self.config.server), kind, name)
        if pin is None:
            return self._quarantined(kind, name, self._waits(content)) if self._must_wait(content) else None
        return self._quarantined(kind, name, _LOST) if pin != self._seen.get(kind, {}).get(name, pin) else None

    def seen(self) -> dict[str, dict[str, str]]:
        """What is offered now: hash by name, by kind."""
        return {kind: dict(named) for kind, named in self._seen.items()}

    def changes(self) -> tuple[str, ...]:
        """For status: what waits for approval, each with the command, without texts of the upstream."""
        if self.is_off:
            return ()
        pins = self.lock.content().of(self.config.server)
        found = [f"{kind} {make_visible(name[:200])}".strip() for kind, named in pins.waiting.items() for name in named]
        return (*([LAUNCH] if pins.waiting_launch else []), *found)

    def _pin(self, pins: ServerPins, kind: str, name: str) -> str | None:
        pin = pins.pin(kind, name)
        return pin.sha256 if pin is not None else self._unsaved.get(kind, {}).get(name)

    def _must_wait(self, content: LockContent) -> bool:
        """Whether what is seen for the first time waits for approval."""
        return self.config.pin == "strict" or bool(content.distrust)

    def _must_write(
        self, content: LockContent, kind: Kind, seen: Mapping[str, ReceivedDefinition], launch: str
    ) -> bool:
        pins = content.servers.get(self.config.server)
        if pins is None:
            return bool(seen)
        if (pins.waiting_launch or pins.launch) != launch:
            return True
        if not self.definitions.are_kept(self.config.server) and pins.count:
            return True
        pinned, waiting = pins.pins.get(kind, {}), pins.waiting.get(kind, {})
        if any(name not in seen or seen[name].sha256 != pin.sha256 for name, pin in waiting.items()):
            return True
        return any(one.sha256 != (waiting.get(name) or pinned.get(name, _NONE)).sha256 for name, one in seen.items())

    def _merge(
        self, content: LockContent, pins: ServerPins, kind: Kind, seen: Mapping[str, ReceivedDefinition], launch: str
    ) -> list[str]:
        """Bring `pins` up to what was seen. Returns what to tell the operator."""
        notes: list[str] = []
        is_new = not pins.launch
        if is_new and not self._must_wait(content):
            pins.launch = launch
        elif launch == pins.launch:
            pins.waiting_launch = ""
        elif launch != pins.waiting_launch:
            pins.waiting_launch = launch
            notes.append("is launched in another way than when it was pinned" if not is_new else "its launch waits")
        pinned, waiting = pins.pins.setdefault(kind, {}), pins.waiting.setdefault(kind, {})
        for name in [name for name in waiting if name not in seen]:
            del waiting[name]
        added: list[str] = []
        changed: list[str] = []
        room = MAX_PINS - len(pins.hashes())
        for name, one in seen.items():
            found = pinned.get(name)
            if found is not None and found.sha256 == one.sha256:
                waiting.pop(name, None)
                continue
            if one.original is None or (name in waiting and waiting[name].sha256 == one.sha256):
                continue
            if room <= 0:
                continue
            room -= 1
            if found is None and not self._must_wait(content):
                pinned[name] = Pin(one.sha256, one.risk)
                added.append(name)
            else:
                waiting[name] = Pin(one.sha256, one.risk)
                changed.append(name)
        if added:
            notes.append(f"{_several(kind)} pinned at first sight{_some(added)}")
        if changed:
            notes.append(
                f"{_several(kind)} that wait for approval{_some(changed)}; see goat-mcp lock show {self.config.server}"
            )
        return notes

    def _pin_unsaved(self, kind: Kind, seen: Mapping[str, ReceivedDefinition]) -> None:
        content = self.lock.content()
        if not self._must_wait(content):
            own = self._unsaved.setdefault(kind, {})
            for name, one in seen.items():
                own.setdefault(name, one.sha256)

    def _waits(self, content: LockContent) -> str:
        return f"it waits for approval, {f'because {content.distrust}' if content.distrust else 'as pin: strict wants'}"

    def _rejected(self, kind: Kind, name: str, why: str) -> RejectedEntry:
        target = lock_name(self.config.server, kind, name)
        return RejectedEntry(
            make_visible(name[:200]),
            f"{why}; see and approve it with: goat-mcp lock approve {target}",
            ReasonCode.QUARANTINED,
        )

    def _quarantined(self, kind: Kind, name: str, why: str, suggestion: str = "") -> ToolError:
        target = lock_name(self.config.server, kind, name)
        asks_user = (
            "Do not look for a way around it. Tell the user, who can see the change with: "
            f"goat-mcp lock show {target} and approve it with: goat-mcp lock approve {target}"
        )
        return ToolError(
            ErrorCode.QUARANTINED,
            f"{target} is quarantined: {why}",
            suggestion or asks_user,
            facts={"upstream": self.config.name, "kind": kind, "name": make_visible(name[:200])},
        )


LAUNCH = "launch"
"""What `changes` calls the way an upstream is launched."""
_NONE = Pin("")
_LOST = "its definition has changed since it was pinned, and the pinned one is lost"


def lock_name(server: str, kind: str, name: str) -> str:
    """What `goat-mcp lock` calls it: the canonical name of a tool, others with their kind in front."""
    visible = make_visible(name[:200])
    if kind == "tool":
        return f"{UPSTREAM_PREFIX}{server}{SEPARATOR}{visible}"
    return f"{kind}:{server}" if kind == "instructions" else f"{kind}:{server}:{visible}"


def _by_name(seen: Sequence[ReceivedDefinition]) -> dict[str, ReceivedDefinition]:
    """In order; of two with one name the first counts, as in the catalog."""
    found: dict[str, ReceivedDefinition] = {}
    for one in seen:
        found.setdefault(one.name, one)
    return found


def _several(kind: str) -> str:
    return kind if kind.endswith("s") else f"{kind}s"


def _some(names: Iterable[str]) -> str:
    """After a colon; nothing for what has no name, as instructions."""
    listed = [make_visible(name[:100]) for name in names if name]
    rest = f" and {len(listed) - _NAMES_SHOWN} more" if len(listed) > _NAMES_SHOWN else ""
    return f": {', '.join(listed[:_NAMES_SHOWN])}{rest}" if listed else ""
