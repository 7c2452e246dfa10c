"""text-transform: what operations do, all problems in one error, and that nothing runs on. tools.md, section 3."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goat_mcp.processes.computing.text_work import transform
from goat_mcp.processes.computing.worker_main import Refused
from tests.manifests.calling import Caller

pytestmark = pytest.mark.anyio

TOOL = "text-transform__transform"


@pytest.mark.parametrize(
    ("text", "operation", "wanted"),
    [
        ("  a b\n", {"op": "trim"}, "a b"),
        ("  a  ", {"op": "trim", "side": "start"}, "a  "),
        ("--a--", {"op": "trim", "side": "end", "characters": "-"}, "--a"),
        ("ab", {"op": "case", "to": "upper"}, "AB"),
        ("my HTTPServer name", {"op": "case", "to": "snake"}, "my_http_server_name"),
        ("my_server-name", {"op": "case", "to": "camel"}, "myServerName"),
        ("my server", {"op": "case", "to": "pascal"}, "MyServer"),
        ("MyServer", {"op": "case", "to": "kebab"}, "my-server"),
        ("the end", {"op": "case", "to": "title"}, "The End"),
        ("it's a dog\u2019s LIFE", {"op": "case", "to": "title"}, "It's A Dog\u2019s Life"),
        ("the 3rd a_b cafe\u0301s", {"op": "case", "to": "title"}, "The 3rd A_B Cafe\u0301s"),
        ("a.b.c", {"op": "replace", "old": ".", "new": r"\1$&"}, r"a\1$&b\1$&c"),
        ("a.b.c", {"op": "replace", "old": ".", "new": "", "count": 1}, "ab.c"),
        ("a1b22", {"op": "regex", "pattern": r"\d+"}, ["1", "22"]),
        ("a=1;b=2", {"op": "regex", "pattern": r"(\w)=\d"}, ["a", "b"]),
        ("ab", {"op": "regex", "pattern": "(a)(b)"}, ["ab"]),
        ("a=1", {"op": "regex", "pattern": r"(\w)=(\d)", "replacement": r"\2=\1"}, "1=a"),
        ("Ab\nab", {"op": "regex", "pattern": "^a", "flags": "im"}, ["A", "a"]),
        ("a,b,c", {"op": "split", "separator": ","}, ["a", "b", "c"]),
        ("a,b,c", {"op": "split", "separator": ",", "limit": 2}, ["a", "b,c"]),
        ("a\r\nb\nc", {"op": "split"}, ["a", "b", "c"]),
        ("a\nb\nc", {"op": "split", "limit": 2}, ["a", "b\nc"]),
        ("a\nb", {"op": "split", "limit": 1}, ["a\nb"]),
        ("ab", {"op": "split", "separator": ""}, ["a", "b"]),
        ("b\na\n", {"op": "sort"}, "a\nb\n"),
        ("b\r\na", {"op": "sort", "order": "descending"}, "b\r\na"),
        ("10 x\n9 y\nz", {"op": "sort", "by": "number"}, "9 y\n10 x\nz"),
        ("b\nA", {"op": "sort", "ignore_case": True}, "A\nb"),
        ("b\na\nb", {"op": "unique"}, "b\na"),
        ("B\nb", {"op": "unique", "ignore_case": "true"}, "B"),
        ("hello", {"op": "slice", "start": 1, "end": "-1"}, "ell"),
        ("ключ", {"op": "base64", "mode": "encode"}, "0LrQu9GO0Yc="),
        ("0LrQu9GO0Yc", {"op": "base64", "mode": "decode"}, "ключ"),
        ("??>", {"op": "base64", "mode": "encode", "url_safe": True}, "Pz8-"),
        ("a b/ü", {"op": "url", "mode": "encode"}, "a%20b%2F%C3%BC"),
        ("a b", {"op": "url", "mode": "encode", "plus": True}, "a+b"),
        ("a%20b+c", {"op": "url", "mode": "decode"}, "a b+c"),
        ("abc", {"op": "hash"}, hashlib.sha256(b"abc").hexdigest()),
        ("abc", {"op": "hash", "algorithm": "md5"}, "900150983cd24fb0d6963f7d28e17f72"),
    ],
)
def test_what_each_operation_does(text: str, operation: dict[str, Any], wanted: Any) -> None:
    assert transform(text, [operation]) == wanted


def test_operations_go_on_from_each_other_and_work_on_each_item_of_a_list() -> None:
    operations = [
        {"op": "split", "separator": ","},
        {"op": "trim"},
        {"op": "unique"},
        {"op": "sort"},
        {"op": "case", "to": "upper"},
        {"op": "slice", "end": 2},
        {"op": "join", "separator": "+"},
    ]

    assert transform("pear, apple,pear,fig", operations) == "APPLE+FIG"


@settings(deadline=None)
@given(st.text(), st.lists(st.sampled_from(["base64", "url"])))
def test_what_was_encoded_is_decoded_to_the_same_text(text: str, ways: list[str]) -> None:
    there = [{"op": way, "mode": "encode"} for way in ways]
    back = [{"op": way, "mode": "decode"} for way in reversed(ways)]

    assert transform(text, [*there, *back]) == text


@settings(deadline=None)
@given(
    st.lists(st.dictionaries(st.sampled_from(["op", "to", "mode", "pattern"]), st.text() | st.integers() | st.none()))
)
def test_odd_operations_are_done_or_refused_and_nothing_else(operations: list[dict[str, Any]]) -> None:
    try:
        transform("some text", operations)
    except Refused as refused:
        assert refused.head["problems"]


async def test_a_text_comes_back_as_it_is_and_a_list_as_json(tmp_path: Path) -> None:
    caller = Caller(tmp_path)

    text = await caller.call(TOOL, text="a\nb", operations=[{"op": "case", "to": "upper"}])
    items = await caller.call(TOOL, text="a\nb", operations='[{"op": "split"}]')

    assert (text.text, text.structured) == ("A\nB", {"result": "A\nB"})
    assert (items.text, items.structured) == ('["a", "b"]', {"result": ["a", "b"]})


async def test_all_problems_of_all_operations_are_one_error(tmp_path: Path) -> None:
    operations: list[Any] = [
        {"op": "trimm"},
        3,
        {"op": "case", "to": "loud"},
        {"op": "replace"},
        {"op": "regex", "pattern": "a("},
        {"op": "regex", "pattern": "a", "replacement": r"\2"},
        {"op": "hash", "algoritm": "md5"},
        {"op": "slice", "start": "x"},
    ]

    problem = await Caller(tmp_path).problem(TOOL, text="x", operations=operations)

    names = "trim, case, replace, regex, split, join, sort, unique, slice, base64, url, hash"
    assert problem.splitlines() == [
        f'operations.0.op: wants one of {names}; got str "trimm"; did you mean trim?',
        "operations.1: wants an object such as {op: trim}; got int 3",
        'operations.2.to: wants one of upper, lower, title, capitalize, camel, pascal, snake, kebab; got str "loud"',
        "operations.3.old: is required by replace",
        "operations.3.new: is required by replace",
        "operations.4.pattern: is no regular expression: missing ), unterminated subpattern, at character 2",
        "operations.5.replacement: invalid group reference 2 at position 1; "
        "write \\1 or \\g<name> for a group, \\\\ for a backslash",
        "operations.6.algoritm: unknown field; did you mean algorithm?",
        'operations.7.start: wants a whole number; got str "x"',
        "Correct these fields and call the tool again.",
        "[E_INPUT]",
    ]


@pytest.mark.parametrize(
    ("operations", "told"),
    [
        ([{"op": "join"}], "operations.0: join wants a list, but one text comes here; split first"),
        (
            [{"op": "split"}, {"op": "regex", "pattern": "a"}],
            "operations.1: regex wants one text, but a list of texts comes here; join first",
        ),
        ([{"op": "split"}, {"op": "split"}], "operations.1: split wants one text, but a list of texts comes here; "),
        ([{"op": "base64", "mode": "decode"}], "operations.0: base64: "),
        ([{"op": "replace", "old": "", "new": "a"}], "operations.0.old: is empty"),
        ([{"op": "trim"}] * 101, "operations: are 101; 100 are the most"),
    ],
)
def test_what_cannot_be_done_is_told_with_its_place(operations: list[Any], told: str) -> None:
    with pytest.raises(Refused) as refused:
        transform("!", operations)

    (problem,) = refused.value.head["problems"]
    assert ": ".join(problem).startswith(told)


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "regex", "pattern": "(a+)+$"},
        {"op": "regex", "pattern": "(a|aa)+$", "replacement": "x"},
        {"op": "regex", "pattern": "(?:a*)*b", "flags": "s"},
    ],
)
async def test_a_pattern_that_never_ends_is_ended(tmp_path: Path, operation: dict[str, Any]) -> None:
    caller = Caller(tmp_path)

    problem = await caller.problem(TOOL, text="a" * 60 + "!", operations=[operation])

    assert re.search(r"it took longer than 2 s of a processor's time", problem)
    assert problem.endswith("[E_TIMEOUT]")

    assert (await caller.value(TOOL, text="a", operations=[{"op": "trim"}])) == {"result": "a"}


@pytest.mark.parametrize(
    "operations",
    [
        [{"op": "replace", "old": "a", "new": "a" * 50_000}] * 3,
        [{"op": "regex", "pattern": "a", "replacement": "a" * 50_000}] * 3,
        [{"op": "split", "separator": ""}, {"op": "join", "separator": "a" * 100_000}] * 2,
        [{"op": "base64", "mode": "encode"}] * 100,
    ],
    ids=["replace", "regex", "join", "base64"],
)
async def test_a_text_that_grows_without_end_is_ended(tmp_path: Path, operations: list[Any]) -> None:
    problem = await Caller(tmp_path).problem(TOOL, text="a" * 1000, operations=operations)

    assert problem.splitlines()[-1] in ("[E_INPUT]", "[E_TIMEOUT]", "[E_TOO_LARGE]")


async def test_no_operations_leave_the_text_as_it_is(tmp_path: Path) -> None:
    assert await Caller(tmp_path).value(TOOL, text="", operations=[]) == {"result": ""}
