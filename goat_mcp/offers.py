"""What sources offer beside tools: resources, templates, prompts. The sibling of `registry`, with the same rules.

Names and URIs of one source never take the place of another's that is live (COL-1, COL-2). What one client may see of
it is `item_catalog`'s business.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from goat_mcp.registry import Collision

Entry = Mapping[str, Any]
Kind = Literal["resources", "templates", "prompts"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OfferedPrompt:
    """`name` is what clients see, `rule_name` what rules and the audit record know; `entry` is under `name`."""

    name: str
    native_name: str
    rule_name: str
    entry: Entry


@dataclass(frozen=True)
class Shadowed(Collision):
    """A URI, or a template, that another source has, too: reads of it go there (NAM-6)."""

    def __str__(self) -> str:
        remedy = f"ReadMcpResource with the server named reads that of {self.source}"
        return f"{self.name} is kept by {self.kept_source}; {remedy}"


@dataclass(frozen=True)
class Offer:
    """All of one source. `ttl_ms` has, by kind, how long its list stays fresh; a kind it does not offer is absent."""

    resources: tuple[Entry, ...] = ()
    templates: tuple[Entry, ...] = ()
    prompts: tuple[OfferedPrompt, ...] = ()
    ttl_ms: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True)
class OffersSnapshot:
    """What all sources together offer: by URI, by template, by exposed name, each with the source that has it."""

    generation: int = 0
    resources: Mapping[str, tuple[str, Entry]] = field(default_factory=dict[str, tuple[str, Entry]])
    templates: Mapping[str, tuple[str, Entry]] = field(default_factory=dict[str, tuple[str, Entry]])
    prompts: Mapping[str, tuple[str, OfferedPrompt]] = field(default_factory=dict[str, tuple[str, OfferedPrompt]])
    ttls: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])
    collisions: tuple[Collision, ...] = ()


class Offers:
    """Offers by source, in the order in which the sources were declared (AGG-5). Readers take a snapshot."""

    def __init__(self) -> None:
        self._offers: dict[str, Offer] = {}
        self._listeners: list[Callable[[OffersSnapshot], None]] = []
        self._prompt_owner: dict[str, str] = {}
        """Who had a name first keeps it, whether it still lists it or not (COL-2), until the sources are rearranged."""
        self._snapshot = OffersSnapshot()

    @property
    def snapshot(self) -> OffersSnapshot:
        return self._snapshot

    @property
    def sources(self) -> Sequence[str]:
        return tuple(self._offers)

    def declare(self, *sources: str) -> None:
        for source in sources:
            self._offers.setdefault(source, Offer())

    def of(self, source: str) -> Offer:
        return self._offers[source]

    def replace(self, source: str, offer: Offer) -> None:
        """Swap all that one source offers in one step; listeners hear of it if anything changed."""
        if self._offers.get(source) == offer:
            return
        self._offers[source] = offer
        self._publish()

    def rearrange(self, gone: Collection[str], order: Sequence[str]) -> None:
        """These sources, in this order, are all there are now; what those in `gone` offered is taken away."""
        now = {source: Offer() if source in gone else self._offers.get(source, Offer()) for source in order}
        is_same = list(now.items()) == list(self._offers.items())
        self._offers = now
        prompts = {(source, prompt.name) for source, offer in now.items() for prompt in offer.prompts}
        self._prompt_owner = {name: owner for name, owner in self._prompt_owner.items() if (owner, name) in prompts}
        if not is_same:
            self._publish()

    def _publish(self) -> None:
        before = self._snapshot
        collisions: list[Collision] = []
        resources = {source: [(str(entry["uri"]), entry) for entry in one.resources] for source, one in self._each()}
        templates = {
            source: [(str(entry["uriTemplate"]), entry) for entry in one.templates] for source, one in self._each()
        }
        self._snapshot = OffersSnapshot(
            before.generation + 1,
            _by_uri(resources, before.resources, collisions),
            _by_uri(templates, before.templates, collisions),
            self._by_name(collisions),
            {source: one.ttl_ms for source, one in self._each()},
            tuple(collisions),
        )
        for listener in self._listeners:
            listener(self._snapshot)

    def _by_name(self, collisions: list[Collision]) -> dict[str, tuple[str, OfferedPrompt]]:
        kept: dict[str, tuple[str, OfferedPrompt]] = {}
        for source, one in self._each():
            for prompt in one.prompts:
                owner = self._prompt_owner.setdefault(prompt.name, source)
                if prompt.name in kept or owner != source:
                    collisions.append(Collision(prompt.name, source, owner))
                else:
                    kept[prompt.name] = (source, prompt)
        return kept

    def on_change(self, listener: Callable[[OffersSnapshot], None]) -> None:
        """Call `listener` with each new snapshot."""
        self._listeners.append(listener)

    def _each(self) -> list[tuple[str, Offer]]:
        return list(self._offers.items())


def _by_uri(
    listed: Mapping[str, Sequence[tuple[str, T]]],
    before: Mapping[str, tuple[str, T]],
    collisions: list[Collision],
) -> dict[str, tuple[str, T]]:
    """Each key with the source that had it before, as long as that still lists it; else with the first in order."""
    has = {source: {key for key, _ in entries} for source, entries in listed.items()}
    kept: dict[str, tuple[str, T]] = {}
    for source, entries in listed.items():
        for key, entry in entries:
            owner = before[key][0] if key in before and key in has.get(before[key][0], ()) else source
            if key in kept:
                collisions.append(Shadowed(key, source, kept[key][0]))
            elif owner == source:
                kept[key] = (source, entry)
            else:
                collisions.append(Shadowed(key, source, owner))
    return kept
