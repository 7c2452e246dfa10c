"""Tools of a program that embeds us, beside the built-in ones or instead of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from goat_mcp.catalog.registry import NameTaken, Registry
from goat_mcp.core.errors import ErrorCode, ToolError

_SOURCE = "program"


@dataclass(frozen=True)
class ProgramTools:
    """`allowed` ones are called without asking, `disabled` ones not at all.

    `alone`: without the built-in ones, for clients that know them as `name`.
    """

    registry: Registry = field(default_factory=Registry)
    allowed: frozenset[str] = frozenset()
    disabled: frozenset[str] = frozenset()
    alone: bool = False
    name: str = ""
    instructions: str = ""

    def names(self) -> frozenset[str]:
        """What rules and selections may name beside the tools that everybody has."""
        return self.allowed | self.disabled | {*self.registry.names()}

    def add_to(self, registry: Registry) -> Callable[[], None]:
        """Have them there too, now and after each change. Returns what ends that. Raises `NameTaken`."""
        taken = {name.casefold(): (name, source) for name, source in registry.snapshot.source_of.items()}
        for name in self.registry.names():
            if found := taken.get(name.casefold()):
                as_what = "" if found[0] == name else f" as {found[0]}"
                raise NameTaken(f"{name} is already registered by {found[1]}{as_what}; give your tool another name")
        return registry.follow(self.registry, _SOURCE, without=self.disabled)

    def why_missing(self, name: str) -> ToolError | None:
        """Of a name that nobody has: whether it is disabled here."""
        if name not in self.disabled or self.registry.get(name) is None:
            return None
        return ToolError(ErrorCode.TOOL_NOT_IN_CATALOG, f"{name} is disabled here", "Use a tool of the list.")
