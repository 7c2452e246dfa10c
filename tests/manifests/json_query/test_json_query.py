"""json-query: JMESPath over JSON that a client sends. Contract: tools.md, section 3."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.manifests.calling import Caller

pytestmark = pytest.mark.anyio

TOOL = "json-query__query"
PEOPLE = {"people": [{"name": "Ann", "age": 30}, {"name": "Bo", "age": 3}]}


@pytest.mark.parametrize("data", [PEOPLE, json.dumps(PEOPLE)], ids=["JSON", "text"])
async def test_a_query_is_applied_to_json_and_to_text_that_holds_json(tmp_path: Path, data: Any) -> None:
    result = await Caller(tmp_path).call(TOOL, data=data, query="people[?age > `20`].name")

    assert (result.text, result.structured) == ('["Ann"]', {"result": ["Ann"]})


@pytest.mark.parametrize(
    ("data", "query", "found"),
    [
        (PEOPLE, "nobody", "null"),
        (None, "@", "null"),
        (True, "@", "true"),
        ("3", "@", "3"),
        ('"text"', "@", '"text"'),
        ([3, 1, 2], "sort(@)", "[1, 2, 3]"),
        ({"ключ": "значение"}, '"ключ"', '"значение"'),
        ([1, 2], "length(@)", "2"),
        ({"a": [{"b": 1}, {"b": 2}]}, "sum(a[].b)", "3"),
    ],
)
async def test_every_kind_of_answer_is_json_and_null_is_one(tmp_path: Path, data: Any, query: str, found: str) -> None:
    result = await Caller(tmp_path).call(TOOL, data=data, query=query)

    assert (result.is_error, result.text) == (False, found)
    assert result.structured == {"result": json.loads(found)}


async def test_pretty_indents_the_text(tmp_path: Path) -> None:
    result = await Caller(tmp_path).call(TOOL, data={"a": {"b": 1}}, query="a", pretty="true")

    assert result.text == '{\n  "b": 1\n}'


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("a b", "query: is no JMESPath: Unexpected token: b, at character 3: a >>>b"),
        ("a ^ b", "query: is no JMESPath: Unknown token ^, at character 3: a >>>^ b"),
        ("people[", "query: is no JMESPath: it ends too early, after character 7"),
        ("", "query: is empty; @ is the whole document"),
        ("(" * 3_000 + "a" + ")" * 3_000, "query: has too many expressions in one another, e.g. parentheses"),
        ("nosuch(@)", "query: Unknown function: nosuch()"),
        ("length(`1`)", "query: In function length(), invalid type for value: 1"),
        ("max(@)", "query: In function max(), invalid type for value"),
    ],
)
async def test_a_query_that_is_wrong_is_told_with_the_place(tmp_path: Path, query: str, told: str) -> None:
    problem = await Caller(tmp_path).problem(TOOL, data=PEOPLE, query=query)

    assert problem.startswith(told)
    assert problem.endswith("[E_INPUT]")


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ('{"a": }', "data: is no JSON: Expecting value at line 1, column 7"),
        ("[NaN]", "data: is no JSON: NaN is no JSON number"),
        ("", "data: is no JSON: Expecting value at line 1, column 1"),
    ],
)
async def test_data_that_is_no_json_is_told_with_the_place(tmp_path: Path, data: str, told: str) -> None:
    problem = await Caller(tmp_path).problem(TOOL, data=data, query="@")

    assert problem.splitlines()[0] == told


async def test_more_data_than_10_mb_is_refused(tmp_path: Path) -> None:
    problem = await Caller(tmp_path).problem(TOOL, data='"' + "x" * (10 * 1024 * 1024) + '"', query="@")

    assert problem.splitlines()[0] == "data has 10,485,762 bytes, and 10,485,760 are the most"


async def test_a_query_over_10_mb_of_data_is_answered(tmp_path: Path) -> None:
    data = json.dumps([{"n": n, "pad": "x" * 80} for n in range(90_000)])

    assert await Caller(tmp_path).value(TOOL, data=data, query="[-1].n") == {"result": 89_999}


@pytest.mark.parametrize(
    "query",
    ["|".join(["[@,@]"] * 40), "|".join(["[@,@][]"] * 40)],
    ids=["a result that no memory holds", "a list that doubles again and again"],
)
async def test_a_short_query_that_makes_endless_work_is_ended(tmp_path: Path, query: str) -> None:
    problem = await Caller(tmp_path).problem(TOOL, data=[1], query=query)

    assert problem.splitlines()[-1] in ("[E_TIMEOUT]", "[E_TOO_LARGE]", "[E_INPUT]")


@pytest.mark.parametrize("depth", [900, 100_000])
async def test_data_nested_deep_is_answered_or_refused_and_the_next_call_works(tmp_path: Path, depth: int) -> None:
    caller = Caller(tmp_path)

    result = await caller.call(TOOL, data="[" * depth + "]" * depth, query="@")

    assert "E_INTERNAL" not in result.text
    assert await caller.value(TOOL, data="[1]", query="[0]") == {"result": 1}


async def test_several_problems_of_the_arguments_are_one_error(tmp_path: Path) -> None:
    problem = await Caller(tmp_path).problem(TOOL, querry="a", pretty="perhaps")

    assert sorted(problem.splitlines()[:4]) == [
        "data: is required",
        'pretty: wants boolean; got str "perhaps"',
        "querry: unknown field; did you mean query?",
        "query: is required",
    ]
