"""The tools of a catalog as people see them: by server, with what each costs a model in tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from goat_mcp.catalog.filter import token_cost
from goat_mcp.catalog.registry import BUILTIN_SOURCE, AnyTool
from goat_mcp.core.spec import ToolSpec
from goat_mcp.gateway.gateway import Gateway

BUILT_IN = "built in"


@dataclass(frozen=True)
class CatalogTool:
    """A tool as it is shown. `server` is the name in the user's file, or `built in`. `is_on`: clients may call it;
    `is_listed`: the list that they get holds it."""

    spec: ToolSpec
    server: str
    wire: Mapping[str, Any]
    is_listed: bool
    is_on: bool = True

    @cached_property
    def tokens(self) -> int:
        return token_cost(self.wire)

    @property
    def risk(self) -> str:
        return self.spec.risk.name.lower()

    @property
    def effects(self) -> str:
        return ", ".join(self.spec.effects)

    def matches(self, word: str) -> bool:
        return any(word.casefold() in text.casefold() for text in (self.spec.name, self.spec.description, self.server))


def catalog_tools(gateway: Gateway, *, with_off: bool = False) -> list[CatalogTool]:
    """All that may be called, by server: ours first. `with_off`: also those that are switched off."""
    catalog = gateway.catalog
    listed = {wire["name"]: wire for wire in catalog.listing()}
    names = {config.source: config.name for config in gateway.upstreams.configs}
    groups: dict[str, list[CatalogTool]] = {BUILT_IN: []}

    def add(tool: AnyTool, source: str, *, is_on: bool) -> None:
        spec = tool.spec
        server = BUILT_IN if source == BUILTIN_SOURCE else names.get(source, source)
        is_listed = is_on and spec.name in listed
        wire = listed[spec.name] if is_listed else spec.wire()
        groups.setdefault(server, []).append(CatalogTool(spec, server, wire, is_listed, is_on))

    on = catalog.tools()
    for tool in on:
        add(tool, catalog.source_of(tool.spec.name) or BUILTIN_SOURCE, is_on=True)
    if with_off:
        shown = {tool.spec.rule_name for tool in on}
        snapshot = gateway.registry.snapshot
        for name, tool in snapshot.tools.items():
            if tool.spec.rule_name not in shown and tool.spec.toolset != "meta":
                add(tool, snapshot.source_of[name], is_on=False)
    return [tool for group in groups.values() for tool in group]
