"""Which tools are chosen, by names, toolsets and servers, and how a profile narrows that; when a list is too long.

A profile is a narrower view for some clients (PRF-1). If listing all tools costs too much, tools of upstreams are found
by search instead (DEF-1).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, StringConstraints

from goat_mcp.catalog.schemas.dialects import DialectName
from goat_mcp.core.names import (
    DESCRIBE_TOOL,
    RESOURCE_PREFIX,
    SEARCH_TOOLS,
    SEPARATOR,
    SHIPPED_PREFIX,
    TOOLSET_PREFIX,
    UPSTREAM_PREFIX,
)
from goat_mcp.core.settings_part import Names, SettingsPart, default_part
from goat_mcp.core.side_effect import Risk
from goat_mcp.core.spec import DECLARED_TOOLSETS, DEFAULT_TOOLSETS, SHIPPED_TOOLSETS, Toolset, ToolSpec

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
    resource, is_export, _ = spec.name.partition(SEPARATOR)
    if spec.toolset in DECLARED_TOOLSETS and is_export:  # goa's names for tools of ours are none
        labels.add(f"{RESOURCE_PREFIX}{resource}")
        if spec.toolset in SHIPPED_TOOLSETS:
            labels |= {f"{SHIPPED_PREFIX}{resource}", f"{SHIPPED_PREFIX}{spec.name}"}
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
        if spec.toolset == "apps":  # they show what is the caller's own, and change nothing
            return self.allow is None or bool(labels & self.allow)
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


_CHARS_PER_TOKEN = 4


def token_cost(entry: Mapping[str, Any]) -> int:
    """Tokens of one `tools/list` entry: characters of its compact JSON / 4 (tools contract, "Budget")."""
    return -(-len(json.dumps(entry, separators=(",", ":"), ensure_ascii=False)) // _CHARS_PER_TOKEN)


def cost_more_than(entries: Iterable[Mapping[str, Any]], budget: int) -> bool:
    """Whether all of them together cost more. Looks no further than it has to."""
    spent = 0
    for entry in entries:
        spent += token_cost(entry)
        if spent > budget:
            return True
    return False


CatalogMode = Literal["auto", "full", "search", "code"]
TOKEN_BUDGET = 20_000


class DeferredListing(NamedTuple):
    """`auto` defers upstream tools if they cost more than the budget, `full` nothing, `search` always. `code` defers
    ours too: scripts call them. `always` holds labels of what is listed in any mode."""

    mode: CatalogMode = "auto"
    token_budget: int = TOKEN_BUDGET
    always: frozenset[str] = frozenset()

    def without_scripts(self) -> DeferredListing:
        """As it is where nothing runs scripts."""
        return self._replace(mode="search") if self.mode == "code" else self

    def applies(self, entries: Iterable[Mapping[str, Any]], *, saves: bool) -> bool:
        """`entries` are those of the whole catalog, without meta-tools: what listing it would cost."""
        if self.mode != "auto":
            return self.mode != "full"
        # Our own tools are always listed: where there are no others, nothing would be saved.
        return saves and cost_more_than(entries, self.token_budget)

    def defers(self, spec: ToolSpec) -> bool:
        """Where it applies: whether this tool is left out of the list, and found by search."""
        if spec.toolset == "meta" or (self.always and labels_of(spec) & self.always):
            return False
        return spec.toolset not in ("code", "apps") if self.mode == "code" else spec.toolset == "upstream"

    def is_needed(self, spec: ToolSpec) -> bool:
        """Where it applies: whether this meta-tool is listed. Who has scripts calls nothing by `call_tool`."""
        return self.mode != "code" or spec.toolset != "meta" or spec.name in (SEARCH_TOOLS, DESCRIBE_TOOL)


class ProfileTools(SettingsPart):
    """As `catalog.allow` and `catalog.deny`."""

    allow: Names | None = None
    deny: Names = ()


class ProfileOptions(SettingsPart):
    """What is left out is as it is without the profile. `read_only`: nothing but what only reads.

    `token_file` holds the bearer token of the clients over HTTP that have this profile; it is made if it does not
    exist.
    """

    upstreams: Names | None = None
    toolsets: Names | None = None
    tools: ProfileTools = default_part()
    read_only: bool = False
    name_cap: int | None = Field(default=None, ge=32, le=128)
    schema_dialect: DialectName | None = None
    token_budget: int | None = Field(default=None, ge=0)
    token_file: Path | None = None


ProfileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=64)]
