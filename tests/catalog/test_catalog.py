"""What a client sees, and what it is told about a name it may not call."""

from __future__ import annotations

import pytest

from goat_mcp.catalog.catalog import Catalog
from goat_mcp.catalog.filter import CatalogFilter
from goat_mcp.catalog.registry import Registry
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.names import TOOL_ALIASES
from tests.tool_doubles import FakeTool, fake, spec


def catalog_of(*tools: FakeTool, filter: CatalogFilter | None = None) -> Catalog:
    registry = Registry()
    registry.replace_source("builtin", tools)
    return Catalog(registry, filter)


def refusal(catalog: Catalog, name: str) -> ToolError:
    with pytest.raises(ToolError) as caught:
        catalog.resolve(name)
    return caught.value


@pytest.mark.parametrize(
    ("alias", "name"),
    [("FileRead", "Read"), ("read", "Read"), ("search", "Grep"), ("bash", "Bash"), ("FileEdit", "Edit")],
)
def test_names_of_other_systems_resolve_but_are_not_listed(alias: str, name: str) -> None:
    catalog = catalog_of(fake("Read"), fake("Grep"), fake("Bash"), fake("Edit"))

    assert catalog.resolve(alias).spec.name == name
    assert alias not in [entry["name"] for entry in catalog.listing()]


@pytest.mark.parametrize(("alias", "name"), TOOL_ALIASES.items())
def test_every_name_that_a_rule_or_a_selection_may_use_can_be_called(alias: str, name: str) -> None:
    assert catalog_of(fake(name)).resolve(alias).spec.name == name


def test_a_tool_of_exactly_that_name_beats_the_alias() -> None:
    own = fake("search")
    assert catalog_of(fake("Grep"), own).resolve("search") is own


def test_an_unknown_name_gets_near_ones() -> None:
    error = refusal(catalog_of(fake("Read"), fake("Grep")), "Raed")

    assert error.code is ErrorCode.TOOL_NOT_FOUND
    assert error.message == "tool not found: Raed"
    assert "Read" in error.suggestion


# PRF-2
@pytest.mark.parametrize("name", ["Bash", "bash"])
def test_a_hidden_tool_is_said_to_exist(name: str) -> None:
    catalog = catalog_of(fake("Read"), fake("Bash"), filter=CatalogFilter(deny=frozenset({"Bash"})))

    assert refusal(catalog, name).code is ErrorCode.TOOL_NOT_IN_CATALOG
    assert [tool.spec.name for tool in catalog.tools()] == ["Read"]


def test_a_tool_of_a_toolset_that_is_off_is_hidden() -> None:
    catalog = catalog_of(FakeTool(spec("TeamCreate", toolset="teams")))
    assert refusal(catalog, "TeamCreate").code is ErrorCode.TOOL_NOT_IN_CATALOG


def test_allow_and_deny_know_a_tool_by_either_of_its_names() -> None:
    tool = FakeTool(spec("gh__search", canonical_name="mcp__github__search"))

    assert catalog_of(tool, filter=CatalogFilter(allow=frozenset({"mcp__github__search"}))).tools() == (tool,)
    assert catalog_of(tool, filter=CatalogFilter(deny=frozenset({"gh__search"}))).tools() == ()


def test_the_listing_is_made_once_for_each_generation() -> None:
    registry = Registry()
    registry.register(fake("Read"))
    catalog = Catalog(registry)
    first = catalog.listing()

    assert catalog.listing() is first
    registry.register(fake("Bash"))
    assert [entry["name"] for entry in catalog.listing()] == ["Read", "Bash"]
