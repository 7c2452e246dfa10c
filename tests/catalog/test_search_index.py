"""Which tools a query finds (DEF-4)."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from goat_mcp.catalog.search_answer import found_text
from goat_mcp.catalog.search_index import ToolIndex
from goat_mcp.catalog.search_words import words_of
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
    [
        ("getPullRequests", "get pull request"),
        ("list_HTTPServers2", "listed http server 2"),
        ("closing", "closed"),
        ("reviewer", "reviews"),
    ],
)
def test_DEF_4_names_are_split_and_endings_do_not_matter(one: str, other: str) -> None:
    assert words_of(one) == words_of(other)


def test_DEF_4_parameters_are_searched_too() -> None:
    assert best(ToolIndex([tool("a__one", "", "colour"), tool("a__two", "", "threshold")]), "threshold") == ["a__two"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("serach", "a__search_pages"),  # two letters swapped
        ("grafna", "grafana__show"),  # one left out
        ("calenndar", "a__calendar"),  # one too many
        ("elasticsaerhc", "a__elasticsearch"),  # two slips in a long word
        ("elastic", "a__elasticsearch"),  # the beginning of a word
        ("jra", "jira__show"),  # so short that only a letter may be missing
    ],
)
def test_DEF_4_a_word_that_no_tool_has_finds_its_neighbours(query: str, found: str) -> None:
    names = ["a__search_pages", "grafana__show", "a__calendar", "a__elasticsearch", "jira__show"]

    assert best(ToolIndex([tool(name) for name in names]), query) == [found]


@pytest.mark.parametrize("query", ["tonic", "fine", "sendings off", "aaa", "bend", "top", "fin"])
def test_DEF_4_a_word_that_is_known_or_far_from_all_is_left_as_it_is(query: str) -> None:
    index = ToolIndex([tool("a__topic"), tool("a__tonic"), tool("a__final"), tool("a__send"), tool("a__aab")])

    found = best(index, query)

    assert found == {"tonic": ["a__tonic"], "sendings off": ["a__send"]}.get(query, [])


def test_DEF_4_a_mistyped_word_counts_less_than_one_that_is_right() -> None:
    index = ToolIndex([tool("a__calendar"), tool("a__meeting")])

    assert best(index, "calender meeting") == ["a__meeting", "a__calendar"]


def test_DEF_4_the_server_that_a_query_names_comes_first() -> None:
    tools = [
        tool("gitlab__create_issue", "Creates an issue."),
        tool("jira__create_issue", "Creates an issue."),
        tool("notes__create", "Creates a note about an issue in jira."),
    ]

    assert best(ToolIndex(tools), "create an issue in jira")[0] == "jira__create_issue"
    assert best(ToolIndex(tools), "create an issue on gitlab")[0] == "gitlab__create_issue"
    assert best(ToolIndex(tools), "a jira note")[0] == "notes__create"


def test_DEF_4_a_long_description_does_not_hide_a_name_that_fits() -> None:
    long = tool("a__merge_branch", "Merges it. " + "It has much to say about many other things. " * 40)
    short = tool("b__list", "Merge of a branch.")

    assert best(ToolIndex([short, long]), "merge a branch") == ["a__merge_branch", "b__list"]


def test_DEF_4_odd_schemas_are_no_obstacle() -> None:
    odd: list[Any] = [
        {},
        {"properties": []},
        {"properties": {"a": True, "b": {"description": 7, "type": ["string", "null"]}}},
    ]
    specs = [replace(tool(f"s__t{number}"), input_schema=schema) for number, schema in enumerate(odd)]

    ToolIndex(specs)

    assert found_text(specs).splitlines()[::2] == ["mcp__s__t0()", "mcp__s__t1()", "mcp__s__t2(a?: any, b?: str)"]


def test_D21_of_tools_that_fit_about_as_well_the_one_in_use_comes_first_and_no_other() -> None:
    index = ToolIndex([tool("a__send_mail", "Sends mail."), tool("b__send_mail", "Sends mail."), tool("c__list_mail")])

    def found(*used: str) -> list[str]:
        tools, _ = index.best("send mail", lambda _: True, 5, used)
        return [one.rule_name for one in tools]

    assert found()[0] == found("mcp__c__list_mail")[0] == "mcp__a__send_mail"
    assert found("mcp__b__send_mail")[0] == "mcp__b__send_mail"
