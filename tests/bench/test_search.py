"""The benchmark of search: its labelled queries are well-formed, its scores add up, and its searches answer."""

from __future__ import annotations

import re

import pytest

from bench.search.__main__ import BEGIN, END, PAGE, table
from bench.search.definitions import Definition
from bench.search.finders import goat
from bench.search.query_set import HALVES, Half, Query, parsed, queries
from bench.search.score import Answer, Score, score
from bench.search.servers import INSTALLED, servers

_LABEL = re.compile(r"[a-z0-9-]+/[A-Za-z0-9_.-]{1,128}")


def definition(server: str, name: str, description: str) -> Definition:
    return Definition(server, {"name": name, "description": description, "inputSchema": {"type": "object"}})


@pytest.mark.parametrize("half", HALVES)
def test_each_half_has_150_queries_whose_tools_are_of_servers_that_are_installed(half: Half) -> None:
    some = queries(half)
    labels = {label for query in some for label in query.wanted}

    assert len(some) == len({query.text for query in some}) == 150
    assert all(query.wanted for query in some)
    assert [label for label in labels if _LABEL.fullmatch(label) is None] == []
    assert {label.partition("/")[0] for label in labels} <= servers().keys()


def test_no_query_is_in_both_halves() -> None:
    development, held_out = ({query.text for query in queries(half)} for half in HALVES)

    assert development.isdisjoint(held_out)


def test_each_server_is_pinned_and_what_is_installed_stays_out_of_the_repository() -> None:
    assert all(re.fullmatch(r"\d+(\.\d+)+", server.version) for server in servers().values())
    assert {server.registry for server in servers().values()} == {"npm", "pypi"}
    assert all(server.command.is_relative_to(INSTALLED) for server in servers().values())


def test_a_line_that_is_no_query_is_reported_with_its_number() -> None:
    assert parsed("plain\topen it\ta/open b/open\n") == [Query("plain", "open it", frozenset({"a/open", "b/open"}))]
    for wrong in ("plain\topen it", "other\topen it\ta/open", "plain\topen it\t", "open it"):
        with pytest.raises(ValueError, match="line 2"):
            parsed(f"plain\topen it\ta/open\n{wrong}\n")


def test_recall_counts_one_right_tool_among_the_first_ones() -> None:
    asked = parsed("plain\tone\ta/x a/y\nplain\ttwo\ta/z\ntypo\tthre\ta/z\ntypo\tfuor\ta/q\n")
    found = [["a/x"], ["a/x", "a/y", "a/z"], ["a/1", "a/2", "a/3", "a/z"], ["a/1", "a/2", "a/3", "a/4", "a/5", "a/q"]]

    scored = score(asked, [Answer(labels, "t" * 4 * len(labels)) for labels in found])

    assert scored == Score(4, {1: 0.25, 3: 0.5, 5: 0.75}, {"plain": 1.0, "typo": 0.5}, 3.5, 6.0)


def test_our_search_answers_with_labels_and_the_text_that_a_model_reads() -> None:
    tools = [definition("jira-cloud", "create_issue", "Creates an issue."), definition("mail", "send", "Sends a mail.")]

    run = goat(tools, ["write a mail", "new jira ticket"])

    assert [answer.labels[0] for answer in run.answers] == ["mail/send", "jira-cloud/create_issue"]
    assert run.answers[0].text.startswith("mcp__mail__send()\n  Sends a mail.")
    assert len(run.find_s) == 2


def test_the_table_has_a_row_for_each_search_and_half() -> None:
    one = Score(150, {1: 0.5, 3: 0.75, 5: 0.9}, {"plain": 0.9, "server": 1.0, "typo": 0.8}, 220.2, 419.0)

    lines = table({("ours", half): one for half in HALVES}).splitlines()

    assert lines[2:] == [
        f"| 150, {half} | ours | 50.0 % | 75.0 % | 90.0 % | 90.0 % | 100.0 % | 80.0 % | 220 | 419 |" for half in HALVES
    ]


def test_the_page_has_the_table_between_its_marks() -> None:
    _, found, rest = PAGE.read_text().partition(BEGIN)

    assert found and "recall at 5" in rest.partition(END)[0]
