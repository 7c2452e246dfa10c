"""Which tools a query finds (DEF-4)."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from goat_mcp.catalog.search_index import ToolIndex
from goat_mcp.catalog.search_words import words_of
from goat_mcp.catalog.search_answer import found_text
from goat_mcp.core.spec import ToolSpec
from tests.catalog.many_tools import QUERIES, SERVERS
from tests.tool_doubles import spec

LEAST_RECALL = 0.95
"""It was 0.987 (77 of 78 queries, 155 tools of 24 servers) when the set was made."""
_LINE = re.compile(r"(\w+)\((.*?)\): (.*)")


def tool(name: str, description: str = "", *parameters: str) -> ToolSpec:
    canonical = f"mcp__{name}"
    made = spec(canonical, canonical_name=canonical, toolset="upstream")
    schema = {"type": "object", "properties": {parameter: {"type": "string"} for parameter in parameters}}
    return replace(made, description=description, input_schema=schema)


def many_tools() -> list[ToolSpec]:
    return [
        tool(f"{server}__{found[1]}", found[3], *filter(None, found[2].split(", ")))
        for server, lines in SERVERS.items()
        for line in lines.strip().splitlines()
        if (found := _LINE.match(line)) is not None
    ]


def best(index: ToolIndex, query: str, limit: int = 5) -> list[str]:
    tools, _ = index.best(query, lambda _: True, limit)
    return [one.rule_name.removeprefix("mcp__") for one in tools]


def test_DEF_4_recall_at_five_over_the_query_set() -> None:
    specs = many_tools()
    index = ToolIndex(specs)

    missed = {query: best(index, query) for query, wanted in QUERIES.items() if wanted not in best(index, query)}

    assert len(specs) >= 150 and len(SERVERS) >= 12 and len(QUERIES) >= 60
    assert {f"mcp__{wanted}" for wanted in QUERIES.values()} <= {one.rule_name for one in specs}
    recall = 1 - len(missed) / len(QUERIES)
    assert recall >= LEAST_RECALL, f"recall@5 {recall:.3f}; missed {missed}"


def test_DEF_4_equal_scores_go_by_canonical_name_whatever_the_order() -> None:
    tools = [tool("b__send"), tool("a__send"), tool("c__send")]

    assert best(ToolIndex(tools), "send") == best(ToolIndex(tools[::-1]), "send") == ["a__send", "b__send", "c__send"]


def test_DEF_4_a_query_without_words_gives_all_in_their_order() -> None:
    assert best(ToolIndex([tool("b__send"), tool("a__send")]), " the ") == ["b__send", "a__send"]


@pytest.mark.parametrize("query", ["zebra", "\ud800", "日本", "-" * 1000, "a" * 1000])
def test_DEF_4_a_query_that_fits_nothing_finds_nothing_and_any_text_is_one(query: str) -> None:
    found = best(ToolIndex([tool("a__send", "Sends it.")]), query)

    assert found in ([], ["a__send"] if not words_of(query) else [])


@pytest.mark.parametrize(
    ("one", "other"),
    [("getPullRequests", "get pull request"), ("list_HTTPServers2", "listed http server 2"), ("closing", "closed")],
)
def test_DEF_4_names_are_split_and_endings_do_not_matter(one: str, other: str) -> None:
    assert words_of(one) == words_of(other)


def test_DEF_4_parameters_are_searched_too() -> None:
    assert best(ToolIndex([tool("a__one", "", "colour"), tool("a__two", "", "threshold")]), "threshold") == ["a__two"]


def test_DEF_4_odd_schemas_are_no_obstacle() -> None:
    odd: list[Any] = [
        {},
        {"properties": []},
        {"properties": {"a": True, "b": {"description": 7, "type": ["string", "null"]}}},
    ]
    specs = [replace(tool(f"s__t{number}"), input_schema=schema) for number, schema in enumerate(odd)]

    ToolIndex(specs)

    assert found_text(specs).splitlines()[::2] == ["mcp__s__t0()", "mcp__s__t1()", "mcp__s__t2(a?: any, b?: str)"]
