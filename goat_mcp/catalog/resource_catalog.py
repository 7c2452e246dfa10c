"""What one client sees of the resources, templates and prompts of upstreams, and which upstream owns a URI.

What is hidden is neither listed nor found (PRF-2). A client may read a URI that an upstream gave it in a result
(NAM-6).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from goat_mcp.catalog.offerings import Entry, Kind, OfferedPrompt, Offerings
from goat_mcp.catalog.own_lists import OwnLists, OwnOfferings
from goat_mcp.catalog.resource_tools import prompt_spec, reading_spec
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.rights import Rights
from goat_mcp.core.spec import ToolSpec
from goat_mcp.core.uri_template import is_catch_all, matches

LIST_TTL_MS = 60_000
"""How long our own part of a list stays fresh; it never changes while the process lives."""
WhyHidden = Callable[[ToolSpec], str]
"""What keeps an item, or the resources of a server, from this client; empty if nothing does."""


@dataclass(frozen=True)
class VisibleResources:
    """The lists in order, and who owns what."""

    resources: tuple[Entry, ...]
    templates: tuple[Entry, ...]
    prompts: tuple[Entry, ...]
    owner_of_uri: Mapping[str, str]
    owner_of_template: Mapping[str, str]
    prompt_of: Mapping[str, tuple[str, OfferedPrompt]]
    sources: tuple[str, ...]
    """Those whose resources this client may read, in config order."""

    def list(self, kind: Kind) -> tuple[Entry, ...]:
        return {"resources": self.resources, "templates": self.templates, "prompts": self.prompts}[kind]


class ResourceCatalog:
    """A view of the offers. `why_hidden` may change its mind only with a new generation, or after `forget()`."""

    def __init__(
        self, offers: Offerings | OwnOfferings, why_hidden: WhyHidden, server_of: Callable[[str], str]
    ) -> None:
        """`server_of` a source is the part that names of its tools have of it."""
        self._offers = offers
        self._why_hidden = why_hidden
        self._server_of = server_of
        self._generation = -1
        self._items = VisibleResources((), (), (), {}, {}, {}, ())

    def items(self) -> VisibleResources:
        snapshot = self._offers.snapshot
        if snapshot.generation == self._generation:
            return self._items
        sources = tuple(
            source for source in self._offers.sources if not self._why_hidden(reading_spec(self._server_of(source)))
        )
        resources = {uri: owned for uri, owned in snapshot.resources.items() if owned[0] in sources}
        templates = {uri: owned for uri, owned in snapshot.templates.items() if owned[0] in sources}
        prompts = {
            name: (source, prompt)
            for name, (source, prompt) in snapshot.prompts.items()
            if not self._why_hidden(prompt_spec(prompt))
        }
        self._items = VisibleResources(
            _entries(resources.values()),
            _entries(templates.values()),
            tuple(prompt.entry for _, prompt in prompts.values()),
            {uri: source for uri, (source, _) in resources.items()},
            {uri: source for uri, (source, _) in templates.items()},
            prompts,
            sources,
        )
        self._generation = snapshot.generation
        return self._items

    def forget(self) -> None:
        """What may be seen has changed."""
        self._generation = -1

    def ttl_ms(self, kind: Kind) -> int:
        """The shortest time that a part of the list stays fresh; 0 if that is not known of one (CHG-5)."""
        sources = self.items().sources
        known = [
            ttls[kind]
            for source, ttls in self._offers.snapshot.ttls.items()
            if kind in ttls and (kind == "prompts" or source in sources)
        ]
        return min((LIST_TTL_MS, *known))

    def has_prompt(self, name: str) -> bool:
        """Whether there is such a prompt, hidden or not."""
        return name in self._offers.snapshot.prompts

    def prompt(self, name: str) -> tuple[str, OfferedPrompt]:
        """Raises `ToolError`: TOOL_NOT_FOUND, or TOOL_NOT_IN_CATALOG for one that exists but is hidden."""
        if (found := self.items().prompt_of.get(name)) is not None:
            return found
        if name in self._offers.snapshot.prompts:
            raise ToolError(
                ErrorCode.TOOL_NOT_IN_CATALOG,
                f"prompt {name[:200]} exists but is not in this client's catalog",
                "Use a prompt of the list.",
            )
        raise ToolError(
            ErrorCode.TOOL_NOT_FOUND, f"prompt not found: {name[:200]}", "List the prompts to see what there is."
        )

    def owner_of(self, uri: str, given: Collection[str] = (), by_reads: Collection[str] = ()) -> str | None:
        """Who is asked for a URI (NAM-6): who lists it, who gave it to this client, whose template fits.

        `given` are the sources of results that held the URI, `by_reads` those of which only the contents of another
        resource did: they come last, so that reading a resource takes no other's URIs. Of several it is the first in
        config order; what was read, started or listed before makes no difference.
        """
        items = self.items()
        if (owner := items.owner_of_uri.get(uri)) is not None:
            return owner
        if (owner := _first(items.sources, given)) is not None:
            return owner
        fitting = [(template, source) for template, source in items.owner_of_template.items() if matches(template, uri)]
        if fitting:
            return min(fitting, key=lambda one: is_catch_all(one[0]))[1]
        return _first(items.sources, by_reads)

    def owner_of_ref(self, uri: str, given: Collection[str] = (), by_reads: Collection[str] = ()) -> str | None:
        """Whose template or resource a completion is about."""
        return self.items().owner_of_template.get(uri) or self.owner_of(uri, given, by_reads)


@dataclass(eq=False)
class ResourceCatalogs:
    """Those of all clients: one for each list of profiles, and each session that sees lists of its own."""

    offers: Offerings
    why_hidden: Callable[[Rights], WhyHidden]
    server_of: Callable[[str], str]
    own_lists: OwnLists = field(default_factory=OwnLists)
    _catalogs: dict[tuple[tuple[str, ...], str], ResourceCatalog] = field(
        default_factory=dict[tuple[tuple[str, ...], str], ResourceCatalog]
    )

    def of(self, rights: Rights) -> ResourceCatalog:
        """What a client with these rights sees."""
        own = rights.own_lists if rights.own_lists in self.own_lists.sessions else ""
        if (known := self._catalogs.get((rights.profiles, own))) is None:
            for gone in [key for key in self._catalogs if key[1] and key[1] not in self.own_lists.sessions]:
                del self._catalogs[gone]
            offers = OwnOfferings(self.offers, self.own_lists, own) if own else self.offers
            known = ResourceCatalog(offers, self.why_hidden(rights), self.server_of)
            self._catalogs[rights.profiles, own] = known
        return known

    def forget(self) -> None:
        """What may be seen has changed."""
        for catalog in self._catalogs.values():
            catalog.forget()


def _entries(owned: Iterable[tuple[str, Any]]) -> tuple[Entry, ...]:
    return tuple(entry for _, entry in owned)


def _first(in_order: Iterable[str], of: Collection[str]) -> str | None:
    return next((source for source in in_order if source in of), None)


MAX_SESSIONS = 200
MAX_URIS = 1_000
"""Of one session; the oldest are forgotten first, in both."""
MAX_URI_CHARS = 8_000


class UriOwnership:
    """By session: URI -> the sources whose results held it. Which of them is asked does not depend on who was first."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, OrderedDict[str, frozenset[str]]] = OrderedDict()

    def note(self, session_key: str, source: str, blocks: Iterable[Mapping[str, Any]]) -> None:
        """Remember what links and embedded resources among content blocks point to."""
        uris = [uri for block in blocks if (uri := _uri(block))]
        if not uris:
            return
        known = self._sessions.setdefault(session_key, OrderedDict())
        self._sessions.move_to_end(session_key)
        for uri in uris:
            known[uri] = known.get(uri, frozenset()) | {source}
            known.move_to_end(uri)
        while len(known) > MAX_URIS:
            known.popitem(last=False)
        while len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)

    def forget(self, source: str) -> None:
        """It is not there any more; what takes its name may be something else."""
        for known in self._sessions.values():
            for uri, givers in list(known.items()):
                if left := givers - {source}:
                    known[uri] = left
                else:
                    del known[uri]

    def of(self, session_key: str, uri: str) -> frozenset[str]:
        """Who gave this URI to this session."""
        known = self._sessions.get(session_key)
        return frozenset() if known is None else known.get(uri, frozenset())


def _uri(block: Mapping[str, Any]) -> str:
    holder: object = {"resource": block.get("resource"), "resource_link": block}.get(str(block.get("type")))
    uri = cast("Mapping[str, Any]", holder).get("uri") if isinstance(holder, Mapping) else None
    return uri if isinstance(uri, str) and len(uri) <= MAX_URI_CHARS else ""
