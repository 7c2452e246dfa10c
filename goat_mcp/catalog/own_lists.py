"""What single sessions are shown of a source instead of what it shows all others: the process that serves such a
session alone lists something else (CHG-1). The siblings that hold what all see are `registry` and `offerings`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Literal, TypeVar

from goat_mcp.catalog.offerings import Offering, Offerings, OfferingsSnapshot
from goat_mcp.catalog.registry import AnyTool, Registry, Snapshot

Listener = Callable[[Literal["tools", "prompts", "resources"], Collection[str]], None]
"""Gets the list that is another now, and the sessions that see it."""
T = TypeVar("T")
_Table = dict[str, dict[str, T]]
"""By session, by source."""


class OwnLists:
    """Most processes list the same for everybody: then there is nothing here, and nothing costs anything."""

    def __init__(self) -> None:
        self.generation = 0
        """Rises with every change."""
        self.sessions: frozenset[str] = frozenset()
        """Those that see anything of their own."""
        self._tools: _Table[tuple[AnyTool, ...]] = {}
        self._offerings: _Table[Offering] = {}
        self._listeners: list[Listener] = []

    def on_change(self, listener: Listener) -> None:
        """Call `listener` with what sessions have to list again."""
        self._listeners.append(listener)

    def tools(self, session_key: str) -> Mapping[str, tuple[AnyTool, ...]]:
        """By source."""
        return self._tools.get(session_key, {})

    def offerings(self, session_key: str) -> Mapping[str, Offering]:
        """By source."""
        return self._offerings.get(session_key, {})

    def replace_tools(
        self, source: str, by_session: Mapping[str, tuple[AnyTool, ...]], for_all: tuple[AnyTool, ...]
    ) -> None:
        """All that single sessions see of a source's tools; all others see those `for_all`."""
        for session_key in self._replace(self._tools, source, by_session, for_all):
            self._tell("tools", session_key)

    def replace_offerings(self, source: str, by_session: Mapping[str, Offering], for_all: Offering) -> None:
        """As `replace_tools`, for what it offers beside tools."""
        before = {key: own[source] for key, own in self._offerings.items() if source in own}
        for session_key in self._replace(self._offerings, source, by_session, for_all):
            was, now = before.get(session_key, for_all), by_session.get(session_key, for_all)
            if was.prompts != now.prompts:
                self._tell("prompts", session_key)
            if (was.resources, was.templates) != (now.resources, now.templates):
                self._tell("resources", session_key)

    def forget(self, source: str) -> None:
        """Nothing of it is shown any more."""
        self._replace(self._tools, source, {}, ())
        self._replace(self._offerings, source, {}, Offering())

    def _replace(self, table: _Table[T], source: str, by_session: Mapping[str, T], for_all: T) -> list[str]:
        """Returns the sessions that see something else now."""
        before = {key: own[source] for key, own in table.items() if source in own}
        now = {key: own for key, own in by_session.items() if own != for_all}
        if before == now:
            return []
        for key in before:
            del table[key][source]
            if not table[key]:
                del table[key]
        for key, own in now.items():
            table.setdefault(key, {})[source] = own
        self.sessions = frozenset({*self._tools, *self._offerings})
        self.generation += 1
        return [key for key in {**before, **now} if before.get(key, for_all) != now.get(key, for_all)]

    def _tell(self, kind: Literal["tools", "prompts", "resources"], session_key: str) -> None:
        for listener in self._listeners:
            listener(kind, (session_key,))


class OwnTools:
    """The registry as one session sees it."""

    def __init__(self, registry: Registry, own: OwnLists, session_key: str) -> None:
        self.own = own
        self._registry = registry
        self._session_key = session_key
        self._known: tuple[Snapshot, int, Snapshot] | None = None

    @property
    def snapshot(self) -> Snapshot:
        base, generation = self._registry.snapshot, self.own.generation
        if self._known is None or self._known[0] is not base or self._known[1] != generation:
            self._known = (base, generation, self._laid_over(base, generation))
        return self._known[2]

    def get(self, name: str) -> AnyTool | None:
        return self.snapshot.tools.get(name)

    def _laid_over(self, base: Snapshot, generation: int) -> Snapshot:
        left = dict(self.own.tools(self._session_key))
        tools: dict[str, AnyTool] = {}
        source_of: dict[str, str] = {}

        def add(source: str) -> None:
            for tool in left.pop(source):
                name = tool.spec.name
                # A name is its owner's for everybody (COL-2).
                if base.source_of.get(name, source) == source and name not in tools:
                    tools[name], source_of[name] = tool, source

        of_own = frozenset(left)
        for name, tool in base.tools.items():
            source = base.source_of[name]
            if source in left:
                add(source)
            if source not in of_own:
                tools[name], source_of[name] = tool, source
        for source in list(left):  # nobody else sees any tool of it
            add(source)
        return Snapshot(
            base.generation + generation, MappingProxyType(tools), MappingProxyType(source_of), base.collisions
        )


class OwnOfferings:
    """The offerings as one session sees them."""

    def __init__(self, offerings: Offerings, own: OwnLists, session_key: str) -> None:
        self._offerings = offerings
        self._own = own
        self._session_key = session_key
        self._known: tuple[OfferingsSnapshot, int, OfferingsSnapshot] | None = None

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(self._offerings.sources)

    @property
    def snapshot(self) -> OfferingsSnapshot:
        base, generation = self._offerings.snapshot, self._own.generation
        if self._known is None or self._known[0] is not base or self._known[1] != generation:
            own = self._own.offerings(self._session_key)
            self._known = (base, generation, self._offerings.with_own(own, base.generation + generation))
        return self._known[2]
