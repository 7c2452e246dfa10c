"""Which tools are chosen: by their names, toolsets and servers, and how a profile narrows that."""

from __future__ import annotations

from dataclasses import dataclass

from goat_mcp.catalog.schemas.dialects import DialectName
from goat_mcp.core.names import RESOURCE_PREFIX, SEPARATOR, TOOLSET_PREFIX, UPSTREAM_PREFIX
from goat_mcp.core.side_effect import Risk
from goat_mcp.core.spec import DECLARED_TOOLSETS, DEFAULT_TOOLSETS, Toolset, ToolSpec

TEAMS_VARIABLE = "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS"
"""Turns the team tools on, where it is set to anything but empty, 0, false, no or off. Source: Goat, "Teams"."""
_NO_LABELS: frozenset[str] = frozenset()


def server_of(spec: ToolSpec) -> str:
    """The upstream a tool is of, as its canonical name has it; empty for one of our own."""
    if not spec.rule_name.startswith(UPSTREAM_PREFIX):
        return ""
    return spec.rule_name.removeprefix(UPSTREAM_PREFIX).partition(SEPARATOR)[0]


def labels_of(spec: ToolSpec) -> frozenset[str]:
    """Everything that selects this tool: its names, its toolset, its server."""
    labels = {spec.name, spec.rule_name, f"{TOOLSET_PREFIX}{spec.toolset}"}
    if spec.toolset in DECLARED_TOOLSETS:
        labels.add(f"{RESOURCE_PREFIX}{spec.name.partition(SEPARATOR)[0]}")
    if server := server_of(spec):
        labels.add(f"{UPSTREAM_PREFIX}{server}")
    return frozenset(labels)


@dataclass(frozen=True, kw_only=True)
class CatalogFilter:
    """Which tools are in. `allow` None means all; `deny` wins. Both hold labels (`labels_of`), as does `also_on`:
    what a user's own toolset holds, whichever of ours it is in.

    `servers` None means all. `only_reads`: nothing that may change something, whoever's word it is (RSK-3). What
    `also` keeps out is out, too.
    """

    toolsets: tuple[Toolset, ...] = DEFAULT_TOOLSETS
    also_on: frozenset[str] = frozenset()
    allow: frozenset[str] | None = None
    deny: frozenset[str] = frozenset()
    servers: frozenset[str] | None = None
    only_reads: bool = False
    also: CatalogFilter | None = None

    def hides_server(self, server: str) -> bool:
        """Whether all of this upstream is out."""
        return (
            f"{UPSTREAM_PREFIX}{server}" in self.deny
            or (self.servers is not None and server not in self.servers)
            or (self.also is not None and self.also.hides_server(server))
        )

    def admits(self, spec: ToolSpec) -> bool:
        if self.also is not None and not self.also.admits(spec):
            return False
        # Of a large catalog most of the time would go into labels that nothing is held against.
        labels = labels_of(spec) if self.deny or self.also_on or self.allow is not None else _NO_LABELS
        if labels & self.deny:
            return False
        if spec.toolset == "meta":  # they reach what is in, and nothing else
            return True
        if self.servers is not None and (server := server_of(spec)) and server not in self.servers:
            return False
        if self.only_reads and not (spec.hints.read_only and spec.risk <= Risk.LOW):
            return False
        is_on = spec.toolset in self.toolsets or bool(labels & self.also_on)
        return is_on and (self.allow is None or bool(labels & self.allow))


@dataclass(frozen=True, kw_only=True)
class CatalogProfile:
    """How a profile narrows the catalog, and what a client of it is shown of the rest. None: as without it."""

    filter: CatalogFilter
    name_cap: int | None = None
    dialect: DialectName | None = None
    token_budget: int | None = None
