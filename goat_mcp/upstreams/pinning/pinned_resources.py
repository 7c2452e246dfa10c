"""The prompts, templates and instructions of one upstream as its pins allow them (PIN-1, R-UP-6).

Resources are not pinned. Nobody is sent instructions: a change of them is only reported.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from goat_mcp.catalog.offerings import Entry
from goat_mcp.upstreams.config.entry import UpstreamConfig
from goat_mcp.upstreams.pinning.launch_fingerprint import launch_fingerprint
from goat_mcp.upstreams.pinning.pin_lock import definition_hash
from goat_mcp.upstreams.pinning.pins import ReceivedDefinition, UpstreamPins
from goat_mcp.upstreams.status import RejectedEntry

if TYPE_CHECKING:  # loaded at the first list
    from goat_mcp.upstreams.listing.entry_validation import ValidResources

PinnedKind = Literal["templates", "prompts"]
"""The lists that are held against pins, as `offers.Kind` calls them."""
Hashes = Mapping[str, Mapping[str, str]]
"""By list, by what an entry is known by: the hash of the definition that it was made of."""


class _Words(NamedTuple):
    pin: Literal["template", "prompt"]
    key: str


KINDS: Mapping[PinnedKind, _Words] = {
    "templates": _Words("template", "uriTemplate"),
    "prompts": _Words("prompt", "name"),
}


class PinnedResources:
    """Of one upstream."""

    def __init__(self, config: UpstreamConfig, pins: UpstreamPins) -> None:
        self._config = config
        self._pins = pins
        self._rejected: dict[PinnedKind, tuple[RejectedEntry, ...]] = {}
        self._quarantined: dict[PinnedKind, tuple[str, ...]] = {}

    @property
    def rejected(self) -> tuple[RejectedEntry, ...]:
        return tuple(one for rejected in self._rejected.values() for one in rejected)

    @property
    def quarantined(self) -> tuple[str, ...]:
        """Those that are shown as they were pinned, each after its kind."""
        return tuple(f"{KINDS[kind].pin} {name}" for kind, names in self._quarantined.items() for name in names)

    @property
    def is_outdated(self) -> bool:
        """As `UpstreamPins.is_outdated`."""
        return any(self._pins.is_outdated(words.pin) for words in KINDS.values())

    def settle(self, kind: PinnedKind, usable: ValidResources) -> Mapping[str, str]:
        """Pin what is seen for the first time, and note what has changed. Returns the hashes of what was listed.

        Blocks: for a worker thread.
        """
        words = KINDS[kind]
        seen = [
            ReceivedDefinition(str(entry[words.key]), definition_hash(original), entry, original)
            for entry, original in zip(usable.entries, usable.originals, strict=True)
        ]
        self._pins.settle(words.pin, seen, launch_fingerprint(self._config.target))
        return {one.name: one.sha256 for one in seen}

    def shown(self, kind: PinnedKind, entries: Sequence[Entry], hashes: Hashes) -> tuple[Entry, ...]:
        """Of what was listed, what clients may see."""
        words, of_kind = KINDS[kind], hashes.get(kind, {})
        seen = [
            ReceivedDefinition(str(entry[words.key]), of_kind.get(str(entry[words.key]), ""), entry)
            for entry in entries
        ]
        view = self._pins.view(words.pin, seen, lambda definition: _usable(kind, definition))
        self._rejected[kind] = tuple(replace(one, kind=words.pin) for one in view.rejected)
        self._quarantined[kind] = view.quarantined
        return tuple(one.entry for one in view.shown)

    def shown_to_client(self, kind: PinnedKind, entries: Sequence[Entry], hashes: Hashes) -> tuple[Entry, ...]:
        """As `shown`, of what a process lists that serves single clients. What it is held against stays."""
        words, of_kind = KINDS[kind], hashes.get(kind, {})
        seen = [
            ReceivedDefinition(str(entry[words.key]), of_kind.get(str(entry[words.key]), ""), entry)
            for entry in entries
        ]
        view = self._pins.look(words.pin, seen, lambda definition: _usable(kind, definition))
        return tuple(one.entry for one in view.shown)

    def shown_of(self, kind: PinnedKind, listed: Sequence[Entry]) -> tuple[Entry, ...]:
        """As `shown`, of what came another way than the cache's lists, which stay what requests are held against."""
        if self._pins.is_off:
            return tuple(listed)
        words = KINDS[kind]
        seen = [ReceivedDefinition(str(one[words.key]), definition_hash(one), one) for one in listed]
        view = self._pins.look(words.pin, seen, lambda definition: _usable(kind, definition))
        return tuple(one.entry for one in view.shown)

    def changes(self, kind: PinnedKind, listed: Sequence[Entry], hashes: Hashes) -> bool:
        """Whether these, as they came, are others than those of `hashes`."""
        key = KINDS[kind].key
        return {str(one[key]): definition_hash(one) for one in listed} != dict(hashes.get(kind, {}))

    def admit(self, kind: PinnedKind, key: str) -> None:
        """Raises `ToolError(QUARANTINED)` for one that may not be used as it is now."""
        self._pins.admit(KINDS[kind].pin, key)


def _usable(kind: PinnedKind, definition: Mapping[str, Any]) -> Entry | None:
    from goat_mcp.upstreams.listing.entry_validation import valid_resources

    return next(iter(valid_resources(kind, [definition]).entries), None)


MAX_KEPT_CHARS = 65_536
"""Of longer ones the head is kept, with a hash of the whole."""


def settle_instructions(pins: UpstreamPins, instructions: str) -> None:
    """Pin what is seen for the first time, and note a change. Empty is none. Blocks: for a worker thread."""
    if pins.is_off:
        return
    seen: list[ReceivedDefinition] = []
    if instructions:
        definition = _definition(instructions)
        seen = [ReceivedDefinition("", definition_hash(definition), {}, definition)]
    pins.hold("instructions", seen)
    pins.settle("instructions", seen, launch_fingerprint(pins.config.target))


def _definition(instructions: str) -> Any:
    if len(instructions) <= MAX_KEPT_CHARS:
        return instructions
    whole = hashlib.sha256(instructions.encode("utf-8", "surrogatepass")).hexdigest()
    return {"head": instructions[:MAX_KEPT_CHARS], "chars": len(instructions), "sha256": whole}
