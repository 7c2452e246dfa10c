"""What clients may send for a tool's fields, and what they are told when it is wrong."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from goat_mcp.core.arguments import ArgumentReader, ToolInput
from goat_mcp.core.coercion import Problem
from goat_mcp.core.errors import ErrorCode, ToolError


class Item(ToolInput):
    old_string: str


class SearchInput(ToolInput):
    aliases: ClassVar = {"dir": "path", "last_line": "last_line"}
    text_fields: ClassVar = frozenset({"content"})

    pattern: str
    path: str | None = None
    content: str = ""
    mode: Literal["a", "b"] = "a"
    head_limit: int = Field(default=250, ge=0)
    after: int | None = Field(default=None, alias="-A")
    deep: bool = False
    names: list[str] | None = None
    items: list[Item] | None = None
    env: dict[str, str] | None = None

    @classmethod
    def rewrite(cls, arguments: dict[str, Any]) -> Iterable[Problem]:
        if "last_line" in arguments:
            arguments["head_limit"] = arguments.pop("last_line")
        return ()


READER = ArgumentReader(SearchInput)


def read(**arguments: Any) -> SearchInput:
    return READER.read({"pattern": "x", **arguments})


def problem(arguments: dict[str, Any]) -> str:
    with pytest.raises(ToolError) as caught:
        READER.read(arguments)
    assert caught.value.code is ErrorCode.INPUT
    return caught.value.message


@pytest.mark.parametrize(("sent", "meant"), [(" +3", 3), ("2", 2), (7, 7), (4.0, 4)])
def test_whole_numbers_may_come_as_text(sent: object, meant: int) -> None:
    assert read(head_limit=sent).head_limit == meant


@pytest.mark.parametrize(("sent", "meant"), [("true", True), ("False", False), (1, True), (False, False)])
def test_truth_values_may_come_as_text_or_digits(sent: object, meant: bool) -> None:
    assert read(deep=sent).deep is meant


def test_lists_and_objects_may_come_as_json_text_and_one_value_may_stand_for_a_list() -> None:
    assert read(names='["a", "b"]').names == ["a", "b"]
    assert read(names="a").names == ["a"]
    assert read(env='{"K": "v"}').env == {"K": "v"}


@pytest.mark.parametrize("nothing", [None, "null", "undefined"])
def test_null_in_words_means_absent_in_optional_fields_that_are_not_text(nothing: object) -> None:
    assert read(head_limit=nothing, names=nothing).head_limit == 250


def test_null_in_words_is_text_where_text_is_wanted() -> None:
    assert read(path="null").path == "null"


@given(st.text())
def test_data_is_never_converted(text: str) -> None:
    assert read(content=text).content == text


def test_an_empty_text_is_a_legal_value_of_a_required_field() -> None:
    assert READER.read({"pattern": ""}).pattern == ""


def test_other_names_of_a_field_are_known() -> None:
    assert read(dir="/a", headLimit=3) == read(path="/a", head_limit=3)


def test_an_alias_and_its_field_may_agree_but_not_differ() -> None:
    assert read(dir="/a", path="/a").path == "/a"
    assert problem({"pattern": "x", "path": "/a", "dir": "/b"}).startswith("dir: is another name of path")


def test_an_alias_with_another_meaning_is_rewritten() -> None:
    assert read(last_line="9").head_limit == 9


def test_fields_that_are_no_identifiers_have_their_own_name() -> None:
    assert read(**{"-A": "2"}).after == 2


def test_an_unknown_field_is_named_with_the_nearest_known_one() -> None:
    assert problem({"pattern": "x", "head_limt": 3}) == "head_limt: unknown field; did you mean head_limit?"


def test_all_problems_come_in_one_error_a_line_each() -> None:
    lines = problem({"mode": "z", "head_limit": "many", "nope_nope": 1}).splitlines()

    assert [line.split(":")[0] for line in lines] == ["nope_nope", "pattern", "mode", "head_limit"]
    assert "many" in lines[3]


def test_an_error_about_a_huge_field_is_short() -> None:
    assert len(problem({"pattern": "x", "y" * 100_000: "z" * 100_000})) < 1024


def test_text_is_not_made_of_numbers() -> None:
    assert "pattern: wants text; got int 5" in problem({"pattern": 5})


def test_the_schema_is_flat_and_small() -> None:
    schema = READER.schema()

    assert schema["properties"]["-A"] == {"type": "integer"}
    assert schema["properties"]["mode"] == {"default": "a", "enum": ["a", "b"], "type": "string"}
    assert schema["required"] == ["pattern"]
    assert schema["additionalProperties"] is False
    assert not {"title", "$defs", "anyOf"} & set(schema)


def test_a_problem_inside_a_list_is_told_with_its_place() -> None:
    said = problem({"pattern": "x", "items": [{"old_strng": "a"}, 5]}).splitlines()

    assert said == [
        "items.0.old_string: is required",
        "items.0.old_strng: unknown field; did you mean old_string?",
        "items.1: wants an object; got int 5",
    ]


@pytest.mark.parametrize("value", ["a\ud800", ["x", {"y": "\udfff"}], {"\ud83d": 1}])
def test_half_a_surrogate_pair_is_refused_wherever_it_is(value: Any) -> None:
    with pytest.raises(ToolError, match="half a surrogate pair"):
        ArgumentReader(SearchInput).read({"pattern": "x", "anything": value})
