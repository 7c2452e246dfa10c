"""When a catalog is too large to be listed (DEF-1), and what is listed then."""

from __future__ import annotations

from dataclasses import replace

import pytest

from goat_mcp.catalog.builtin_contracts import meta_contracts
from goat_mcp.catalog.catalog import MOST_USED, MOST_USED_TOKENS, Catalog
from goat_mcp.catalog.filter import CatalogFilter, CatalogMode, CatalogProfile, DeferredListing, token_cost
from goat_mcp.catalog.registry import Registry
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.names import RUN_SCRIPT
from goat_mcp.core.rights import Rights
from goat_mcp.core.spec import DEFAULT_TOOLSETS
from tests.tool_doubles import FakeTool, fake, spec

META_NAMES = tuple(spec.name for spec in meta_contracts())
OWN = ("Bash", "Read")


def of_server(name: str, server: str = "files") -> FakeTool:
    canonical = f"mcp__{server}__{name}"
    return FakeTool(spec(canonical, canonical_name=canonical, toolset="upstream"))


def registry_of(*upstream: FakeTool) -> Registry:
    registry = Registry()
    meta = [FakeTool(spec(name, toolset="meta")) for name in META_NAMES]
    registry.replace_source("builtin", [*map(fake, OWN), *meta])
    registry.replace_source("upstream:files", upstream)
    return registry


def listed(catalog: Catalog) -> list[str]:
    return [entry["name"] for entry in catalog.listing()]


def cost_of(registry: Registry) -> int:
    return sum(token_cost(entry) for entry in Catalog(registry, deferral=DeferredListing("full")).listing())


def test_DEF_1_at_the_budget_all_is_listed_and_one_token_above_only_our_own() -> None:
    registry = registry_of(of_server("find"), of_server("move"))
    cost = cost_of(registry)

    at, above = (Catalog(registry, deferral=DeferredListing("auto", budget)) for budget in (cost, cost - 1))

    assert listed(at) == [*OWN, "mcp__files__find", "mcp__files__move"]
    assert listed(above) == [*OWN, *META_NAMES]
    assert [tool.spec.name for tool in above.deferred()] == ["mcp__files__find", "mcp__files__move"]
    assert [tool.spec.name for tool in above.tools()] == [*OWN, *META_NAMES, "mcp__files__find", "mcp__files__move"]
    assert above.resolve("mcp__files__find").spec.name == "mcp__files__find"


@pytest.mark.parametrize(("mode", "budget", "defers"), [("full", 0, False), ("search", 1_000_000, True)])
def test_DEF_1_the_user_can_have_it_always_or_never(mode: CatalogMode, budget: int, defers: bool) -> None:
    catalog = Catalog(registry_of(of_server("find")), deferral=DeferredListing(mode, budget))

    assert listed(catalog) == ([*OWN, *META_NAMES] if defers else [*OWN, "mcp__files__find"])


def test_DEF_1_our_own_tools_alone_are_listed_whatever_they_cost() -> None:
    assert listed(Catalog(registry_of(), deferral=DeferredListing("auto", 0))) == [*OWN]


def test_DEF_1_the_budget_is_of_what_this_client_sees() -> None:
    registry = registry_of(of_server("find"), of_server("move", "other"))
    narrow = CatalogFilter(deny=frozenset({"mcp__other"}))
    deferral = DeferredListing("auto", cost_of(registry) - 1)

    assert listed(Catalog(registry, narrow, deferral=deferral)) == [*OWN, "mcp__files__find"]
    assert listed(Catalog(registry, deferral=deferral)) == [*OWN, *META_NAMES]


def test_DEF_1_a_catalog_that_grows_beyond_the_budget_turns_over_with_a_new_generation() -> None:
    registry = registry_of(of_server("find"))
    catalog = Catalog(registry, deferral=DeferredListing("auto", cost_of(registry)))
    before = (catalog.generation, listed(catalog))

    registry.replace_source("upstream:files", [of_server("find"), of_server("move")])

    assert before[1] == [*OWN, "mcp__files__find"]
    assert listed(catalog) == [*OWN, *META_NAMES]
    assert catalog.generation > before[0]


def test_DEF_2_the_search_tool_says_which_servers_are_behind_it() -> None:
    registry = registry_of(of_server("find"), of_server("move"), of_server("send", "mail"))
    catalog = Catalog(registry, deferral=DeferredListing("search"))

    entry = next(entry for entry in catalog.listing() if entry["name"] == "search_tools")

    assert entry["description"] == "search_tools for tests.\n\nServers (tools): files (2), mail (1)."
    assert catalog.listing() is catalog.listing()


def test_DEF_2_where_all_is_listed_a_meta_tool_is_not_there_and_says_why() -> None:
    with pytest.raises(ToolError) as refused:
        Catalog(registry_of(of_server("find"))).resolve("call_tool")

    assert refused.value.code is ErrorCode.TOOL_NOT_IN_CATALOG
    assert refused.value.suggestion == "Call the tool you want by its own name."


def test_DEF_2_a_selection_of_tools_leaves_the_meta_tools_but_a_denied_one_is_gone() -> None:
    registry = registry_of(of_server("find"), of_server("send", "mail"))
    chosen = CatalogFilter(allow=frozenset({"mcp__files"}), deny=frozenset({"call_tool"}))
    catalog = Catalog(registry, chosen, deferral=DeferredListing("search"))

    assert listed(catalog) == ["search_tools", "describe_tool", "call_tool_readonly"]
    assert [tool.spec.name for tool in catalog.deferred()] == ["mcp__files__find"]


def test_COL_1_an_upstreams_tool_does_not_take_a_meta_tools_name() -> None:
    flat = FakeTool(spec("call_tool", canonical_name="mcp__files__call_tool", toolset="upstream"))
    registry = registry_of(flat)

    assert [(one.name, one.source, one.kept_source) for one in registry.snapshot.collisions] == [
        ("call_tool", "upstream:files", "builtin")
    ]


def test_D21_the_ten_that_are_used_most_are_listed_and_found_all_the_same() -> None:
    registry = registry_of(*(of_server(f"do_{number}") for number in range(14)))
    used = ["mcp__gone__tool", *(f"mcp__files__do_{number}" for number in (13, 2, *range(3, 12)))]

    catalog = Catalog(registry, deferral=DeferredListing("search"), most_used=lambda: used)

    kept = {name for name in listed(catalog) if name.startswith("mcp__")}
    assert kept == {f"mcp__files__do_{number}" for number in (13, *range(2, 11))} and len(kept) == MOST_USED
    assert {tool.spec.name for tool in catalog.deferred()} == {f"mcp__files__do_{number}" for number in (0, 1, 11, 12)}
    assert len(catalog.searched()) == 14


def test_D21_what_is_used_most_is_listed_unless_it_costs_too_much() -> None:
    large = of_server("large")
    large = FakeTool(replace(large.spec, description="word " * MOST_USED_TOKENS))
    registry = registry_of(of_server("find"), large, of_server("move"))
    used = ["mcp__files__find", "mcp__files__large", "mcp__files__move"]

    catalog = Catalog(registry, deferral=DeferredListing("search"), most_used=lambda: used)

    assert listed(catalog) == [*OWN, *META_NAMES, "mcp__files__find", "mcp__files__move"]


@pytest.mark.parametrize("mode", ["code", "full"])
def test_D21_where_nothing_is_searched_or_scripts_call_the_rest_nobody_asks_what_is_used_most(
    mode: CatalogMode,
) -> None:
    def never() -> list[str]:
        raise AssertionError("the record of calls was read")

    registry = registry_of(of_server("find"))
    registry.replace_source("code", [FakeTool(spec(RUN_SCRIPT, toolset="code"))])
    filter = CatalogFilter(toolsets=(*DEFAULT_TOOLSETS, "code"))
    catalog = Catalog(registry, filter, deferral=DeferredListing(mode), most_used=never)

    assert ("mcp__files__find" in listed(catalog)) is (mode == "full")


def test_D21_a_profile_lists_of_them_what_it_has() -> None:
    registry = registry_of(of_server("find"), of_server("move"))
    without = CatalogProfile(filter=CatalogFilter(deny=frozenset({"mcp__files__find"})))
    profiles = {"narrow": without}

    catalog = Catalog(
        registry, deferral=DeferredListing("search"), profiles=profiles, most_used=lambda: ["mcp__files__find"]
    )

    assert "mcp__files__find" in listed(catalog)
    assert not any(name.startswith("mcp__") for name in listed(catalog.of(Rights(profiles=("narrow",)))))


def test_D21_without_the_tool_that_runs_scripts_the_mode_for_scripts_is_search() -> None:
    catalog = Catalog(registry_of(of_server("find")), deferral=DeferredListing("code"))

    assert listed(catalog) == [*OWN, *META_NAMES]
