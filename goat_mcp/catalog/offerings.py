"""What sources offer beside tools: resources, templates, prompts. The sibling of `registry`.

A URI belongs to the first source, in config order, that lists it (NAM-6). The name of a live prompt never moves to
another source (COL-2). What one client may see of it, `resource_catalog` decides.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from goat_mcp.catalog.registry import Collision, name_in_other_case

Entry = Mapping[str, Any]
Kind = Literal["resources", "templates", "prompts"]


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
class Offering:
    """All of one source. `ttl_ms` has, by kind, how long its list stays fresh; a kind it does not offer is absent."""

    resources: tuple[Entry, ...] = ()
    templates: tuple[Entry, ...] = ()
    prompts: tuple[OfferedPrompt, ...] = ()
    ttl_ms: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True)
class OfferingsSnapshot:
    """What all sources together offer: by URI, by template, by exposed name, each with the source that has it."""

    generation: int = 0
    resources: Mapping[str, tuple[str, Entry]] = field(default_factory=dict[str, tuple[str, Entry]])
    templates: Mapping[str, tuple[str, Entry]] = field(default_factory=dict[str, tuple[str, Entry]])
    prompts: Mapping[str, tuple[str, OfferedPrompt]] = field(default_factory=dict[str, tuple[str, OfferedPrompt]])
    ttls: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])
    collisions: tuple[Collision, ...] = ()


class Offerings:
    """Offerings by source, in the order in which the sources were declared (AGG-5). Readers take a snapshot."""

    def __init__(self) -> None:
        self._offers: dict[str, Offering] = {}
        self._listeners: list[Callable[[OfferingsSnapshot], None]] = []
        self._prompt_owner: dict[str, str] = {}
        """By name without case. Who had a name first keeps it, whether it still lists it or not (COL-2), until the
        sources are rearranged."""
        self._snapshot = OfferingsSnapshot()

    @property
    def snapshot(self) -> OfferingsSnapshot:
        return self._snapshot

    @property
    def sources(self) -> Sequence[str]:
        return tuple(self._offers)

    def declare(self, *sources: str) -> None:
        for source in sources:
            self._offers.setdefault(source, Offering())

    def of(self, source: str) -> Offering:
        return self._offers[source]

    def replace(self, source: str, offer: Offering) -> None:
        """Swap all that one source offers in one step; listeners are called if anything changed."""
        if self._offers.get(source) == offer:
            return
        self._offers[source] = offer
        self._publish()

    def with_own(self, own: Mapping[str, Offering], generation: int) -> OfferingsSnapshot:
        """As `snapshot`, with these in the place of what their sources show all others."""
        other = Offerings()
        other._offers = {source: own.get(source, offer) for source, offer in self._offers.items()}
        other._prompt_owner = dict(self._prompt_owner)
        other._publish()
        return replace(other._snapshot, generation=generation)

    def rearrange(self, gone: Collection[str], order: Sequence[str]) -> None:
        """These sources, in this order, are all there are now; what those in `gone` offered is taken away."""
        now = {source: Offering() if source in gone else self._offers.get(source, Offering()) for source in order}
        is_same = list(now.items()) == list(self._offers.items())
        self._offers = now
        prompts = {(source, prompt.name.casefold()) for source, offer in now.items() for prompt in offer.prompts}
        self._prompt_owner = {name: owner for name, owner in self._prompt_owner.items() if (owner, name) in prompts}
        if not is_same:
            self._publish()

    def _publish(self) -> None:
        before = self._snapshot
        collisions: list[Collision] = []
        resources = [(source, str(entry["uri"]), entry) for source, one in self._each() for entry in one.resources]
        templates = [
            (source, str(entry["uriTemplate"]), entry) for source, one in self._each() for entry in one.templates
        ]
        self._snapshot = OfferingsSnapshot(
            before.generation + 1,
            _by_uri(resources, collisions),
            _by_uri(templates, collisions),
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
                owner = self._prompt_owner.setdefault(prompt.name.casefold(), source)
                if prompt.name in kept or owner != source:
                    owners = (own.name for own in self._offers.get(owner, Offering()).prompts)
                    collisions.append(Collision(prompt.name, source, owner, name_in_other_case(prompt.name, owners)))
                else:
                    kept[prompt.name] = (source, prompt)
        return kept

    def on_change(self, listener: Callable[[OfferingsSnapshot], None]) -> None:
        """Call `listener` with each new snapshot."""
        self._listeners.append(listener)

    def _each(self) -> list[tuple[str, Offering]]:
        return list(self._offers.items())


def _by_uri(listed: Iterable[tuple[str, str, Entry]], collisions: list[Collision]) -> dict[str, tuple[str, Entry]]:
    """Each key with the first source that lists it. No history: the owner is the same after a restart (NAM-6)."""
    kept: dict[str, tuple[str, Entry]] = {}
    for source, key, entry in listed:
        if key in kept:
            collisions.append(Shadowed(key, source, kept[key][0]))
        else:
            kept[key] = (source, entry)
    return kept
