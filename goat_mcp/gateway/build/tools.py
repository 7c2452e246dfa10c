"""Which tools the settings choose: the catalog's filter, the profiles, and problems of the choice."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast, get_args

from goat_mcp.catalog.builtin_contracts import LazyTool, app_contracts, builtin_contracts, meta_contracts
from goat_mcp.catalog.catalog import Catalog
from goat_mcp.catalog.filter import (
    TEAMS_VARIABLE,
    CatalogFilter,
    CatalogProfile,
    DeferredListing,
    ProfileOptions,
    labels_of,
)
from goat_mcp.catalog.own_lists import OwnLists
from goat_mcp.catalog.registry import AnyTool, Registry
from goat_mcp.core.errors import ToolError
from goat_mcp.core.names import (
    RESOURCE_PREFIX,
    SEPARATOR,
    SHIPPED_PREFIX,
    TOOL_ALIASES,
    TOOLSET_PREFIX,
    UPSTREAM_PREFIX,
    InvalidName,
    clean_server_name,
)
from goat_mcp.core.spec import Toolset, ToolSpec
from goat_mcp.core.suggestions import did_you_mean
from goat_mcp.settings.settings import BrokenSettings, Settings
from goat_mcp.upstreams.config.entry import UpstreamConfig

if TYPE_CHECKING:  # most starts select nothing
    from goat_mcp.catalog.presets import Selections

DeclaredToolsets = Mapping[str, Sequence[str]]
"""What each declared toolset holds: names of tools and of resources, and `toolset:NAME`."""
_NO_TOOLSETS: DeclaredToolsets = {}


def register_ours(
    registry: Registry,
    settings: Settings,
    toolsets: DeclaredToolsets,
    load: Callable[[str], AnyTool],
    *,
    builtins: bool = True,
) -> None:
    """The built-in tools and meta-tools, of which `load` gives the code; goa's names for them if these may be on."""
    for contract in (*((*builtin_contracts(), *app_contracts()) if builtins else ()), *meta_contracts()):
        registry.register(LazyTool(contract, load))
    chosen = settings.catalog.toolsets
    if "goa" in chosen or any(f"{TOOLSET_PREFIX}goa" in toolsets.get(name, ()) for name in chosen):
        from goat_mcp.catalog.goa_tools import goa_tools

        for tool in goa_tools(load):
            registry.register(tool)


class ToolSelection:
    """`catalog.*` and `profiles` of the settings, over the upstreams there are."""

    def __init__(
        self,
        settings: Settings,
        upstreams: Sequence[UpstreamConfig],
        toolsets: DeclaredToolsets = _NO_TOOLSETS,
        resources: Collection[str] = (),
        program_tools: Collection[str] = (),
        *,
        for_many: bool = False,
    ) -> None:
        """`toolsets` and `resources` are those that manifests declare, `program_tools` those of a program. `for_many`:
        clients are people whom an identity provider knows."""
        self._for_many = for_many and settings.identity.is_on
        self._settings = settings
        self._declared = toolsets
        self._resources = resources
        self._program_tools = program_tools
        self._chosen = settings.catalog
        self._upstreams = upstreams

    def catalog(
        self,
        registry: Registry,
        why_missing: Callable[[str], ToolError | None],
        own_lists: OwnLists | None = None,
        most_used: Callable[[], Sequence[str]] = tuple,
    ) -> Catalog:
        """The catalog over all tools. Raises `BrokenSettings` as `filter` and `profiles` do."""
        dialect = self._chosen.schema_dialect
        return Catalog(
            registry,
            self.filter(),
            why_missing,
            self.deferral(),
            dialect,
            self.profiles(),
            own_lists=own_lists,
            most_used=most_used,
        )

    def deferral(self) -> DeferredListing:
        """Raises `BrokenSettings` for a name that nobody knows."""
        always = self._chosen.always_listed
        if not always:
            return DeferredListing(self._chosen.mode, self._chosen.token_budget)
        from goat_mcp.catalog.presets import BrokenSelection

        try:
            labels = self._selections().labels(always)
        except BrokenSelection as broken:
            raise BrokenSettings(f"catalog.always_listed: {broken}", "Fix it and start again.") from None
        return DeferredListing(self._chosen.mode, self._chosen.token_budget, labels)

    def filter(self) -> CatalogFilter:
        """What a client may see. Raises `BrokenSettings` for a name that nobody knows."""
        chosen = self._chosen
        toolsets, also_on = self._split(chosen.toolsets, "catalog.toolsets")
        toolsets = _with_teams(toolsets)
        if chosen.mode == "code":
            if find_spec("pydantic_monty") is None:
                raise BrokenSettings(
                    "catalog.mode: code needs the extra `code` of goat-mcp, which is not installed",
                    "Install it with: pip install 'goat-mcp[code]', or choose another mode.",
                )
            toolsets = toolsets if "code" in toolsets else (*toolsets, "code")
        if chosen.allow is None and not chosen.deny and not chosen.presets and not self._for_many:
            return CatalogFilter(toolsets=toolsets, also_on=also_on)
        from goat_mcp.catalog.presets import BrokenSelection

        key = "catalog.presets"
        try:
            selections = self._selections()
            key = "catalog.allow"
            allow = selections.labels(chosen.allow) if chosen.allow is not None else None
            key = "catalog.deny"
            deny = selections.labels(chosen.deny)
            key = "identity.tools"
            deny |= self._off_for_many(selections) if self._for_many else frozenset()
        except BrokenSelection as broken:
            raise BrokenSettings(f"{key}: {broken}", "Fix it and start again.") from None
        return CatalogFilter(toolsets=toolsets, also_on=also_on, allow=allow, deny=deny)

    def _off_for_many(self, selections: Selections) -> frozenset[str]:
        """The built-in tools that nobody has named. Raises `BrokenSelection`."""
        named = selections.labels(self._settings.identity.tools)
        return frozenset(spec.name for spec in builtin_contracts() if not labels_of(spec) & named)

    def profiles(self) -> Mapping[str, CatalogProfile]:
        """Raises `BrokenSettings` for a name that nobody knows, in a profile or of one."""
        settings = self._settings
        by_client = [(f"profile_of_client.{client}", name) for client, name in settings.profile_of_client.items()]
        for key, name in [("profile", settings.profile), *by_client]:
            if name and name not in settings.profiles:
                known = did_you_mean(name, settings.profiles) or f"there are {', '.join(settings.profiles) or 'none'}"
                raise BrokenSettings(
                    f"{key}: {name!r} is no profile; {known}", "Add it under profiles, or correct the name."
                )
        return {
            name: CatalogProfile(
                filter=self._filter_of(name, options),
                name_cap=options.name_cap,
                dialect=options.schema_dialect,
                token_budget=options.token_budget,
            )
            for name, options in settings.profiles.items()
        }

    def _filter_of(self, profile: str, options: ProfileOptions) -> CatalogFilter:
        allow, deny = options.tools.allow, options.tools.deny
        allowed: frozenset[str] | None = None
        denied = frozenset[str]()
        if allow is not None or deny:
            from goat_mcp.catalog.presets import BrokenSelection

            key = "allow"
            try:
                selections = self._selections()
                allowed = selections.labels(allow) if allow is not None else None
                key = "deny"
                denied = selections.labels(deny)
            except BrokenSelection as broken:
                raise BrokenSettings(f"profiles.{profile}.tools.{key}: {broken}", "Fix it and start again.") from None
        servers = options.upstreams
        named = get_args(Toolset) if options.toolsets is None else options.toolsets
        own, also_on = self._split(named, f"profiles.{profile}.toolsets")
        return CatalogFilter(
            toolsets=own,
            also_on=also_on,
            allow=allowed,
            deny=denied,
            servers=None if servers is None else frozenset(_server(profile, server) for server in servers),
            only_reads=options.read_only,
        )

    def _selections(self) -> Selections:
        from goat_mcp.catalog.presets import Selections

        return Selections(
            self._chosen.presets,
            flat_names=any(upstream.naming == "flat" for upstream in self._upstreams),
            toolsets=_labels_in(self._declared),
            resources=self._resources,
            program_tools=self._program_tools,
        )

    def check_allowed_are_on(self, registry: Registry) -> None:
        """A tool or toolset that is allowed by its own name is meant to be there; a preset may hold more than is."""
        on = _with_teams(self._split(self._chosen.toolsets, "catalog.toolsets")[0])
        for entry in self._chosen.allow or ():
            name = TOOL_ALIASES.get(entry.strip(), entry.strip())
            tool = registry.get(name)
            toolset = tool.spec.toolset if tool is not None else name.removeprefix(TOOLSET_PREFIX)
            if toolset in self._declared:
                continue  # what it holds is on by that
            if (tool is not None or name.startswith(TOOLSET_PREFIX)) and toolset not in on:
                remedy = f"Set {TEAMS_VARIABLE}=1." if toolset == "teams" else f"Add it with --toolset {toolset}."
                raise BrokenSettings(f"catalog.allow: {entry} needs the toolset {toolset}, which is off", remedy)

    def unknown_servers(self) -> list[dict[str, Any]]:
        """Selections that name a server nobody configured: no error, since one settings file serves many lists."""
        servers = [upstream.server for upstream in self._upstreams]
        known = [f"{UPSTREAM_PREFIX}{server}" for server in servers]
        hint = f"; there are {', '.join(known)}" if known else ""
        found = [
            (entry, f"catalog.{key} selects nothing: no upstream has this name{hint}")
            for key, entries in (("allow", self._chosen.allow), ("deny", self._chosen.deny))
            for entry in entries or ()
            if entry.startswith(UPSTREAM_PREFIX) and SEPARATOR.join(entry.split(SEPARATOR)[:2]) not in known
        ]
        found += [
            (server, f"profiles.{name}.upstreams selects nothing: no upstream has this name")
            for name, options in self._settings.profiles.items()
            for server in options.upstreams or ()
            if _server(name, server) not in servers
        ]
        return [{"name": name, "reason_code": "unknown_server", "detail": detail} for name, detail in found]

    def _split(self, chosen: Sequence[str], key: str) -> tuple[tuple[Toolset, ...], frozenset[str]]:
        """Our toolsets among them, and the labels of what the declared ones hold. Raises `BrokenSettings`."""
        ours = get_args(Toolset)
        labels: set[str] = set()
        for name in chosen:
            if name in ours:
                continue
            if name not in self._declared:
                known = [*ours, *self._declared]
                hint = did_you_mean(name, known) or f"there are {', '.join(known)}"
                raise BrokenSettings(f"{key}: {name!r} is no toolset; {hint}", "Correct the name, or declare it.")
            labels |= _labels_in(self._declared)[name]
        return tuple(cast("Toolset", name) for name in chosen if name in ours), frozenset(labels)


def _labels_in(declared: DeclaredToolsets) -> Mapping[str, frozenset[str]]:
    """Of each declared toolset, the labels of what it holds."""
    return {
        name: frozenset(label for entry in entries for label in _labels(entry)) for name, entries in declared.items()
    }


def names_selected(entries: Iterable[str], declared: DeclaredToolsets, specs: Iterable[ToolSpec]) -> frozenset[str]:
    """The names of the tools that entries of a toolset select, as an agent's rights have them: those among `specs`, and
    what may come of upstreams."""
    of_toolsets = {f"{TOOLSET_PREFIX}{name}": labels for name, labels in _labels_in(declared).items()}
    labels = frozenset(label for entry in entries for label in of_toolsets.get(entry, _labels(entry)))
    found = {spec.name for spec in specs if labels_of(spec) & labels}
    return frozenset(found | {label for label in labels if label.startswith(UPSTREAM_PREFIX)})


def _labels(entry: str) -> Sequence[str]:
    if entry.startswith((TOOLSET_PREFIX, SHIPPED_PREFIX)) or SEPARATOR in entry:
        return (entry,)
    if (name := entry.removeprefix(RESOURCE_PREFIX)) != entry:  # a reference: it follows no alias
        return (entry,) if name in TOOL_ALIASES else (entry, name)
    return (TOOL_ALIASES.get(entry, entry), f"{RESOURCE_PREFIX}{entry}")


def _server(profile: str, name: str) -> str:
    """The part that names of its tools have of an upstream."""
    try:
        return clean_server_name(name.removeprefix(UPSTREAM_PREFIX))
    except InvalidName as problem:
        raise BrokenSettings(f"profiles.{profile}.upstreams: {problem}", "Name upstreams as in their file.") from None


def _with_teams(chosen: Sequence[Toolset]) -> tuple[Toolset, ...]:
    """Those of the settings, and the teams if their variable is set. Raises `BrokenSettings`."""
    if os.environ.get(TEAMS_VARIABLE, "").strip().lower() not in ("", "0", "false", "no", "off"):
        return (*chosen, "teams")
    if "teams" in chosen:
        raise BrokenSettings(
            f"catalog.toolsets: teams needs the environment variable {TEAMS_VARIABLE}", f"Set {TEAMS_VARIABLE}=1."
        )
    return tuple(chosen)
