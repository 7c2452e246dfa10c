"""Every tool of the process by name. Readers take an immutable snapshot and never lock."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from goat_mcp.core.tool import Tool

AnyTool = Tool[Any]
BUILTIN_SOURCE = "builtin"


class NameTaken(Exception):
    """A tool of that name is registered and replacing it was not asked for."""


@dataclass(frozen=True, slots=True)
class Collision:
    """A tool that is rejected because another source has its name (gateway contract COL-1).

    `kept_name` is the name of the other, if it differs: in upper and lower case (R-UP-5).
    """

    name: str
    source: str
    kept_source: str
    kept_name: str = ""

    def __str__(self) -> str:
        if self.source == self.kept_source:
            return f"{self.source} lists {self.name} twice; the first one is used"
        remedy = f"give {self.source} another `naming` (qualified, or an alias) so that its {self.name} is visible"
        return f"{self.kept_name or self.name} is kept by {self.kept_source}; {remedy}"


@dataclass(frozen=True)
class Snapshot:
    """The registry at one moment. `generation` rises with every visible change."""

    generation: int
    tools: Mapping[str, AnyTool]
    source_of: Mapping[str, str]
    collisions: tuple[Collision, ...]


class Registry:
    """Tools grouped by source. Sources are listed in the order they were declared, tools in their source's order.

    Any thread may change it: changes take turns. Source: Goat, `mu sync.RWMutex`.
    """

    def __init__(self) -> None:
        self._changing = threading.RLock()
        """Held by whoever changes it, and while listeners hear of the change; never by readers."""
        self._sources: dict[str, dict[str, AnyTool]] = {}
        self._repeated: dict[str, tuple[Collision, ...]] = {}
        self._owner: dict[str, str] = {}
        """By name without case: a reader takes `bash` for `Bash` (R-UP-5)."""
        self._listeners: list[Callable[[Snapshot], None]] = []
        self._is_rearranged = False
        self._snapshot = Snapshot(0, MappingProxyType({}), MappingProxyType({}), ())

    @property
    def snapshot(self) -> Snapshot:
        return self._snapshot

    def declare(self, *sources: str) -> None:
        """Reserve places in the listing order for sources whose tools come later (AGG-5)."""
        with self._changing:
            for source in sources:
                self._sources.setdefault(source, {})

    @contextmanager
    def rearranged(self, gone: Collection[str], order: Sequence[str]) -> Generator[None]:
        """Take away the tools of the sources `gone` and list those of `order` in this order, after all others.

        What the block changes beside that becomes visible with it, in one step. A name whose source lists it still
        stays with it; the others are free for the first source that lists them (COL-2).
        """
        with self._changing:
            for source in gone:
                self._sources.pop(source, None)
                self._repeated.pop(source, None)
            others = {source: tools for source, tools in self._sources.items() if source not in order}
            self._sources = others | {source: self._sources.get(source, {}) for source in order}
            self._is_rearranged = True
            try:
                yield
            finally:
                self._is_rearranged = False
                listed = {(source, name.casefold()) for source, tools in self._sources.items() for name in tools}
                self._owner = {name: owner for name, owner in self._owner.items() if (owner, name) in listed}
                self._publish()

    def register(self, tool: AnyTool, *, source: str = BUILTIN_SOURCE, replace: bool = False) -> None:
        """Add one tool. Raises `NameTaken` if any source has the name, unless `replace` asks for it in words.

        Source: Goat `Register`, Shelly `Register` (which replaces).
        """
        name = tool.spec.name
        with self._changing:
            owner = self._snapshot.source_of.get(name)
            if owner is not None:
                if not replace:
                    raise NameTaken(f"{name} is already registered by {owner}; pass replace=True to take its place")
                source = owner
            self._sources.setdefault(source, {})[name] = tool
            self._publish()

    def unregister(self, name: str, *, source: str = BUILTIN_SOURCE) -> bool:
        """Remove the tool that this source has under the name. Returns whether there was one."""
        with self._changing:
            if self._sources.get(source, {}).pop(name, None) is None:
                return False
            if self._owner.get(name.casefold()) == source:
                del self._owner[name.casefold()]
            self._publish()
            return True

    def replace_source(self, source: str, tools: Iterable[AnyTool]) -> bool:
        """Swap all tools of one source in one step. Returns whether anything visible changed.

        A source that lists one name twice keeps the first and reports the second.
        """
        kept: dict[str, AnyTool] = {}
        repeated: list[Collision] = []
        for tool in tools:
            if tool.spec.name in kept:
                repeated.append(Collision(tool.spec.name, source, source))
            else:
                kept[tool.spec.name] = tool
        with self._changing:
            self._sources[source] = kept
            self._repeated[source] = tuple(repeated)
            return self._publish()

    def unregister_prefix(self, prefix: str) -> int:
        """Remove every tool whose name starts with `prefix`. Returns how many. Source: Goat `UnregisterMCPTools`."""
        gone = 0
        with self._changing:
            for source, tools in self._sources.items():
                kept = {name: tool for name, tool in tools.items() if not name.startswith(prefix)}
                gone += len(tools) - len(kept)
                self._sources[source] = kept
            for name in [name for name in self._owner if name.startswith(prefix.casefold())]:
                del self._owner[name]
            self._publish()
        return gone

    def get(self, name: str) -> AnyTool | None:
        return self._snapshot.tools.get(name)

    def names(self) -> Sequence[str]:
        return tuple(self._snapshot.tools)

    def merge(self, other: Registry, *, replace: bool = False) -> None:
        """Copy all tools of another registry. Raises `NameTaken` unless `replace`. Source: Shelly `Merge`."""
        theirs = other.snapshot
        with self._changing:
            for name, tool in theirs.tools.items():
                self.register(tool, source=theirs.source_of[name], replace=replace)

    def on_change(self, listener: Callable[[Snapshot], None]) -> Callable[[], None]:
        """Call `listener` with each new snapshot, in order, on the thread that changed the registry.

        Other changes wait for it: it must not wait for another thread. Returns what ends that.
        """

        def end() -> None:
            with self._changing:
                self._listeners = [one for one in self._listeners if one is not listener]

        with self._changing:
            self._listeners = [*self._listeners, listener]
        return end

    def follow(self, other: Registry, source: str, *, without: Collection[str] = ()) -> Callable[[], None]:
        """Have the tools of `other` here too, as those of `source`, now and after each change, but for those `without`.

        Returns what ends that.
        """

        def changed(snapshot: Snapshot) -> None:
            self.replace_source(source, [tool for name, tool in snapshot.tools.items() if name not in without])

        with other._changing:
            changed(other.snapshot)
            return other.on_change(changed)

    def _publish(self) -> bool:
        if self._is_rearranged:
            return False
        tools: dict[str, AnyTool] = {}
        source_of: dict[str, str] = {}
        collisions = [collision for repeated in self._repeated.values() for collision in repeated]
        for source, own in self._sources.items():
            for name, tool in own.items():
                # A live name never moves to another source (COL-2): the first owner keeps it.
                owner = self._owner.setdefault(name.casefold(), source)
                if owner == source:
                    tools[name] = tool
                    source_of[name] = source
                else:
                    in_other_case = name_in_other_case(name, self._sources.get(owner, ()))
                    collisions.append(Collision(name, source, owner, in_other_case))
        before = self._snapshot
        if _same(before.tools, tools) and before.collisions == tuple(collisions):
            return False
        self._snapshot = Snapshot(
            before.generation + 1, MappingProxyType(tools), MappingProxyType(source_of), tuple(collisions)
        )
        for listener in self._listeners:
            listener(self._snapshot)
        return True


def name_in_other_case(name: str, kept: Iterable[str]) -> str:
    """Which of `kept` is the name in other case; empty if the name itself is there, or none is."""
    alike = [one for one in kept if one.casefold() == name.casefold()]
    return "" if name in alike else next(iter(alike), "")


def _same(before: Mapping[str, AnyTool], after: Mapping[str, AnyTool]) -> bool:
    return list(before) == list(after) and all(
        before[name] is tool or before[name] == tool for name, tool in after.items()
    )
