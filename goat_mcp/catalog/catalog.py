"""What one client sees and may call: the registry's tools, narrowed by allow, deny and toolsets.

Where listing all of it would cost too much, upstream tools are deferred: left out of the list, not out of the catalog.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from goat_mcp.catalog.app_tools import has_app, is_for_apps_only, meant_by_app
from goat_mcp.catalog.filter import (
    TEAMS_VARIABLE,
    CatalogFilter,
    CatalogProfile,
    DeferredListing,
    server_of,
    token_cost,
)
from goat_mcp.catalog.own_lists import OwnLists, OwnTools
from goat_mcp.catalog.registry import AnyTool, Registry, Snapshot
from goat_mcp.catalog.schemas.dialects import DEFAULT_DIALECT, DIALECTS, DialectName
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.names import RUN_SCRIPT, SEARCH_TOOLS, SEPARATOR, TOOL_ALIASES, UPSTREAM_PREFIX
from goat_mcp.core.result import ToolResult
from goat_mcp.core.rights import NO_LIMITS, Rights
from goat_mcp.core.spec import ToolSpec
from goat_mcp.core.suggestions import nearest
from goat_mcp.core.tool import Access, ChecksInput, OwnTool

if TYPE_CHECKING:  # loaded with the first schema that may need rewriting
    from goat_mcp.catalog.schemas.subschemas import Rewrite

_NAMED_SERVERS = 40
MOST_USED = 10
"""Upstream tools that are listed although the others are deferred: those that were called most."""
MOST_USED_TOKENS = 2_000
"""What all of them may cost: what is called often is listed, but not at any price."""
_NO_PROFILES: Mapping[str, CatalogProfile] = {}


@dataclass(frozen=True, slots=True)
class ListedTool:
    """A tool as clients see it. `rewrites` says what of its schemas is not as `spec` has them (SCH-1)."""

    spec: ToolSpec
    entry: Mapping[str, Any]
    rewrites: tuple[Rewrite, ...] = ()


class Resolver(Protocol):
    """Where a call's name is looked up."""

    def resolve(self, name: str) -> AnyTool:
        """Raises `ToolError`: TOOL_NOT_FOUND, or TOOL_NOT_IN_CATALOG for one that exists but is hidden."""
        ...

    def of(self, rights: Rights) -> Resolver:
        """Where names are looked up for a call with these rights."""
        ...


@dataclass(frozen=True)
class _Renamed(ChecksInput, OwnTool):
    """A tool under the name that a profile gives it: an upstream's, for no other name is ever cut."""

    spec: ToolSpec
    tool: AnyTool

    def validate(self, arguments: Mapping[str, Any]) -> Any:
        return self.tool.validate(arguments)

    async def checked(self, input: Any) -> Any:
        return await self.tool.checked(input) if isinstance(self.tool, ChecksInput) else input

    def access(self, input: Any) -> Access:
        return self.tool.access(input)

    async def execute(self, input: Any, ctx: ToolContext) -> ToolResult:
        return await self.tool.execute(input, ctx)


class Catalog:
    """A view of the registry, computed once per generation."""

    def __init__(
        self,
        registry: Registry | OwnTools,
        filter: CatalogFilter | None = None,
        explain_missing: Callable[[str], ToolError | None] = lambda name: None,
        deferral: DeferredListing | None = None,
        dialect: DialectName = DEFAULT_DIALECT,
        profiles: Mapping[str, CatalogProfile] = _NO_PROFILES,
        name_cap: int | None = None,
        own_lists: OwnLists | None = None,
        most_used: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        """`explain_missing` knows a better reason than "not found" for some names, e.g. an upstream that is down.

        `dialect` is what the client's host accepts of a schema. `profiles` are those that a call's rights may name.
        `name_cap`: where it is not the one that the registry's names obey. `own_lists`: what single sessions see.
        `most_used` gives canonical names, the tool that was called most first, and always the same: a list that
        changed while a session runs would cost its client the prompt cache.
        """
        self._registry = registry
        self._own_lists = own_lists or OwnLists()
        self._most_used = most_used
        self._explain_missing = explain_missing
        self._filter = filter or CatalogFilter()
        self._deferral = deferral or DeferredListing()
        self.dialect = DIALECTS[dialect]
        self._profiles = profiles
        self._name_cap = name_cap
        self._shows_apps = False
        self._views: dict[tuple[tuple[str, ...], bool, str], Catalog] = {}
        self._choices = 0
        self._sources: dict[str, str] = {}
        self._renamed: dict[str, _Renamed] = {}
        self._generation = -1
        self._tools: dict[str, AnyTool] = {}
        self._deferred: dict[str, AnyTool] = {}
        self._searched: tuple[AnyTool, ...] = ()
        self._unlisted: frozenset[str] = frozenset()
        self._listed: dict[str, ListedTool] = {}
        self._listing: list[dict[str, Any]] = []

    @property
    def generation(self) -> int:
        """Rises with every change of what may be in, for anybody."""
        return self._registry.snapshot.generation + self._choices + self._own_lists.generation

    def choose(
        self, filter: CatalogFilter, profiles: Mapping[str, CatalogProfile], deferral: DeferredListing | None = None
    ) -> None:
        """From now on these say what is in, here and in all views. `profiles` hold those that any view was made for."""
        self._choose(filter, deferral or self._deferral, self.dialect.name, profiles, self._name_cap)

    def _choose(
        self,
        filter: CatalogFilter,
        deferral: DeferredListing,
        dialect: DialectName,
        profiles: Mapping[str, CatalogProfile],
        name_cap: int | None,
    ) -> None:
        self._filter, self._deferral, self._profiles, self._name_cap = filter, deferral, profiles, name_cap
        self.dialect = DIALECTS[dialect]
        self._choices += 1
        self._listed, self._renamed = {}, {}
        for (names, *_), view in self._views.items():
            self._narrow(view, names)

    def of(self, rights: Rights) -> Catalog:
        """What these rights leave of it: each of their profiles narrows it further, the last says how it looks. The
        tools of ours that have an MCP App are in it only for a client that renders those."""
        if not rights.profiles and rights.shows_apps == self._shows_apps and not rights.own_lists:
            return self
        own = rights.own_lists if rights.own_lists in self._own_lists.sessions else ""
        key = (rights.profiles, rights.shows_apps, own)
        if (view := self._views.get(key)) is None:
            if own:
                gone = [other for other in self._views if other[2] and other[2] not in self._own_lists.sessions]
                for other in gone:
                    del self._views[other]
            view = self._views[key] = self._view(rights, own)
        return view

    def _view(self, rights: Rights, own: str) -> Catalog:
        registry = self._registry
        if own and isinstance(registry, Registry):
            registry = OwnTools(registry, self._own_lists, own)
        view = Catalog(
            registry, explain_missing=self._explain_missing, own_lists=self._own_lists, most_used=self._most_used
        )
        view._shows_apps = rights.shows_apps
        self._narrow(view, rights.profiles)
        return view

    def _narrow(self, view: Catalog, names: Sequence[str]) -> None:
        filter, deferral = self._filter, self._deferral
        dialect, name_cap = self.dialect.name, self._name_cap
        for profile in [self._profiles[name] for name in names]:
            filter = replace(profile.filter, also=filter)
            if profile.token_budget is not None:
                deferral = deferral._replace(token_budget=profile.token_budget)
            dialect, name_cap = profile.dialect or dialect, profile.name_cap or name_cap
        view._choose(filter, deferral, dialect, self._profiles, name_cap)

    def hides_server(self, server: str) -> bool:
        """Whether all of this upstream is kept from this client."""
        return self._filter.hides_server(server)

    def source_of(self, name: str) -> str | None:
        """The registry's source of the tool that this client calls so."""
        self._refresh()
        if (source := self._sources.get(name)) is None and (tool := self._of_app(name)) is not None:
            source = self._sources.get(tool.spec.name)
        return source

    def shows(self, spec: ToolSpec) -> bool:
        """Whether this client may see what the spec stands for."""
        return self._filter.admits(spec)

    def tools(self) -> Sequence[AnyTool]:
        """All that may be called, in their order: those that are listed, and those that are deferred."""
        self._refresh()
        return tuple(self._tools.values())

    def deferred(self) -> Sequence[AnyTool]:
        """The tools that are left out of the list (DEF-1), in their order; none if all is listed."""
        self._refresh()
        return tuple(self._deferred.values())

    def searched(self) -> Sequence[AnyTool]:
        """Those that a search looks at: as `deferred`, with those that are listed because they are used so much."""
        self._refresh()
        return self._searched

    def most_used(self) -> Sequence[str]:
        """The canonical names of the tools that were used most before the start."""
        return self._most_used()

    def listed(self, rights: Rights = NO_LIMITS) -> Sequence[AnyTool]:
        """The tools of the list that these rights permit; all of them if the rights name the tools."""
        self._refresh()
        return tuple(
            tool
            for name, tool in self._tools.items()
            if rights.permits(tool.spec.rule_name, tool.spec.name)
            and (name not in self._unlisted or rights.allowed is not None)
        )

    def for_models(self, rights: Rights = NO_LIMITS) -> Sequence[AnyTool]:
        """As `listed`, without those that only the documents of MCP Apps call."""
        return tuple(tool for tool in self.listed(rights) if not is_for_apps_only(tool.spec.meta))

    def listing(self) -> list[dict[str, Any]]:
        """The tools as `tools/list` entries, built once per generation. Callers must not change it."""
        self._refresh()
        return self._listing

    def shown(self) -> Mapping[str, ListedTool]:
        """The tools by name, in the order of the list, as clients see them."""
        self._refresh()
        return self._listed

    def listed_anywhere(self, name: str) -> ListedTool | None:
        """As `shown`, for a request of which the profiles are not known yet: here, or else in a view that has it."""
        for catalog in (self, *self._views.values()):
            if (listed := catalog.shown().get(name)) is not None:
                return listed
        return None

    def resolve(self, name: str) -> AnyTool:
        """The tool a client means by `name`, aliases included.

        Raises `ToolError`: TOOL_NOT_FOUND with near names, or TOOL_NOT_IN_CATALOG for one that exists but is hidden.
        """
        self._refresh()
        if (tool := self._tools.get(name)) is not None:
            return tool
        known = self._registry.get(name)
        canonical = TOOL_ALIASES.get(name)
        if canonical is not None and (known is None or known.spec.rule_name == canonical):
            if (tool := self._tools.get(canonical)) is not None:
                return tool
            name = canonical if self._registry.get(canonical) is not None else name
        if (hidden := self._registry.get(name)) is not None:
            if hidden.spec.toolset == "meta" and self._filter.admits(hidden.spec):
                raise ToolError(
                    ErrorCode.TOOL_NOT_IN_CATALOG,
                    f"{name} is only there where the list of tools is too long, and here all are listed",
                    "Call the tool you want by its own name.",
                )
            if hidden.spec.toolset == "apps" and not self._shows_apps:
                raise ToolError(
                    ErrorCode.TOOL_NOT_IN_CATALOG,
                    f"{name} is only there for clients that render MCP Apps, and this one does not say so",
                    "The user sees the same with goat-mcp approvals, goat-mcp list, or on the page of goat-mcp ui.",
                )
            if hidden.spec.toolset == "teams" and "teams" not in self._filter.toolsets:
                raise ToolError(
                    ErrorCode.TOOL_NOT_IN_CATALOG,
                    f"{name} exists only where the environment variable {TEAMS_VARIABLE} is set",
                    f"The user can start the server with {TEAMS_VARIABLE}=1; until then use Agent.",
                )
            raise ToolError(
                ErrorCode.TOOL_NOT_IN_CATALOG,
                f"{name} exists but is not in this client's catalog",
                "Use a tool of the list; the operator can enable it with --toolset or catalog.allow.",
            )
        if (of_app := self._of_app(name)) is not None:
            return of_app
        if self._is_of_hidden_server(name):
            raise ToolError(
                ErrorCode.TOOL_NOT_IN_CATALOG,
                f"{name[:200]} is not in this client's catalog: its server is not",
                "Use a tool of the list; the operator can change the profile, or catalog.deny.",
            )
        if (reason := self._explain_missing(name)) is not None:
            raise reason
        near = dict.fromkeys(TOOL_ALIASES.get(one, one) for one in nearest(name, [*self._tools, *TOOL_ALIASES]))
        raise ToolError(
            ErrorCode.TOOL_NOT_FOUND,
            f"tool not found: {name[:200]}",
            f"Did you mean {', '.join(near)}?" if near else "List the tools to see what there is.",
        )

    def _of_app(self, name: str) -> AnyTool | None:
        """The tool that the document of an MCP App means by its server's own name for it, if that is one alone."""
        if not self._shows_apps:
            return None
        meant = meant_by_app(name, (tool.spec for tool in self._tools.values()))
        return self._tools.get(meant[0].name) if len(meant) == 1 else None

    def _is_of_hidden_server(self, name: str) -> bool:
        server, separator, _ = name.removeprefix(UPSTREAM_PREFIX).partition(SEPARATOR)
        return name.startswith(UPSTREAM_PREFIX) and bool(separator) and self.hides_server(server)

    def _admitted(self, snapshot: Snapshot) -> dict[str, AnyTool]:
        """The tools that are in, under the names they have here."""
        in_registry = {
            name: tool
            for name, tool in snapshot.tools.items()
            if self._filter.admits(tool.spec) and (self._shows_apps or tool.spec.toolset != "apps")
        }
        if self._name_cap is None:
            self._sources = {name: snapshot.source_of[name] for name in in_registry}
            return in_registry
        tools: dict[str, AnyTool] = {}
        self._sources = {}
        renamed: dict[str, _Renamed] = {}
        for name, tool in in_registry.items():
            known = self._renamed.get(name)
            if known is None or known.tool is not tool:
                known = _Renamed(tool.spec.under_cap(self._name_cap), tool)
            renamed[name] = known
            own = known.spec.name
            if own not in tools:  # two flat names may become one: the first has it, as everywhere (COL-1)
                tools[own] = tool if own == name else known
                self._sources[own] = snapshot.source_of[name]
        self._renamed = renamed
        return tools

    def _refresh(self) -> None:
        snapshot = self._registry.snapshot
        # Not `self.generation`: another thread may have changed the registry since.
        generation = snapshot.generation + self._choices
        if generation == self._generation:
            return
        tools = self._admitted(snapshot)
        # Without the tool that runs scripts there would be none that calls what is not listed.
        deferral = self._deferral if RUN_SCRIPT in tools else self._deferral.without_scripts()
        own = {name: tool for name, tool in tools.items() if tool.spec.toolset != "meta"}
        # Hosts look in the list for a tool with a document: it is there whatever it costs (ERA-7).
        deferred = {
            name: tool for name, tool in own.items() if deferral.defers(tool.spec) and not has_app(tool.spec.meta)
        }
        self._listed = {name: self._as_listed(name, tool.spec) for name, tool in own.items()}
        entries = {name: dict(listed.entry) for name, listed in self._listed.items()}
        if deferral.applies(entries.values(), saves=bool(deferred)):
            self._searched = tuple(deferred.values())
            if deferral.mode != "code":  # scripts call what is not listed, too
                for name in self._used_most_of(deferred, entries):
                    del deferred[name]
            not_needed = {name for name, tool in tools.items() if not deferral.is_needed(tool.spec)}
            self._tools, self._deferred, self._unlisted = tools, deferred, frozenset(deferred.keys() | not_needed)
            self._listing = [
                entries.get(name) or _entry(tool, deferred)
                for name, tool in tools.items()
                if name not in self._unlisted
            ]
        else:
            self._tools, self._deferred, self._unlisted = own, {}, frozenset()
            self._searched = ()
            self._listing = list(entries.values())
        self._generation = generation

    def _used_most_of(self, deferred: Collection[str], entries: Mapping[str, Mapping[str, Any]]) -> list[str]:
        canonical = {self._listed[name].spec.rule_name: name for name in deferred}
        found: list[str] = []
        left = MOST_USED_TOKENS
        for name in [canonical[used] for used in self._most_used() if used in canonical][:MOST_USED]:
            if (cost := token_cost(entries[name])) <= left:
                left -= cost
                found.append(name)
        return found

    def _as_listed(self, name: str, spec: ToolSpec) -> ListedTool:
        known = self._listed.get(name)
        if known is not None and known.spec is spec:
            return known
        if spec.is_plain and self.dialect.name == DEFAULT_DIALECT:
            return ListedTool(spec, spec.wire())
        from goat_mcp.catalog.schemas.portable import portable

        shown = portable(spec.wire(), self.dialect)
        return ListedTool(spec, shown.entry, shown.rewrites)


def _entry(tool: AnyTool, deferred: dict[str, AnyTool]) -> dict[str, Any]:
    """The tool's entry; the one that searches also says what there is to be found, by server."""
    entry = tool.spec.wire()
    if tool.spec.toolset != "meta" or tool.spec.name != SEARCH_TOOLS:
        return entry
    counts = Counter(filter(None, (server_of(other.spec) for other in deferred.values())))
    named = ", ".join(f"{server} ({count})" for server, count in list(counts.items())[:_NAMED_SERVERS])
    more = f" and {len(counts) - _NAMED_SERVERS} more" if len(counts) > _NAMED_SERVERS else ""
    servers = f"Servers (tools): {named}{more}." if counts else "No server has tools now."
    return {**entry, "description": f"{entry['description']}\n\n{servers}"}
