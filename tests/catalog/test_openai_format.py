"""OpenAI's function calling: what is offered, what is read of a reply, and how a result becomes a message."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from goat_mcp.catalog.openai_format import OpenAiCall, definitions, read_tool_calls, tool_message
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.result import ToolResult, error_result, image_block, text_block, text_result
from tests.contract.test_every_tool import TOOLS
from tests.tool_doubles import spec

MAX_DESCRIPTION_CHARS = 1024
"""What OpenAI took for years, and servers that imitate it still do."""


def asked(arguments: Any, *, id: Any = "call_1", name: Any = "Read", **more: Any) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}, **more}


def problem(call: Any) -> str:
    (read,) = read_tool_calls([call])
    assert read.problem is not None
    assert read.problem.code is ErrorCode.INPUT
    return read.problem.message


def test_a_definition_has_the_three_members_of_openais() -> None:
    tool = spec("Read")
    tool.input_schema.update({"properties": {"file_path": {"type": "string"}}, "required": ["file_path"]})

    assert definitions([tool]) == [
        {
            "type": "function",
            "function": {
                "name": "Read",
                "description": "Read for tests.",
                "parameters": {
                    "type": "object",
                    "properties": {"file_path": {"type": "string"}},
                    "required": ["file_path"],
                },
            },
        }
    ]


REFUSED_BY_OPENAI: list[dict[str, Any]] = [{}, {"type": "object"}, {"oneOf": [{"required": ["a"]}], "enum": [{}]}]


@pytest.mark.parametrize("schema", REFUSED_BY_OPENAI)
def test_parameters_are_a_plain_object_with_properties_whatever_an_upstream_declares(schema: dict[str, Any]) -> None:
    tool = spec("mcp__x__y")
    tool.input_schema.clear()
    tool.input_schema.update(schema)

    (made,) = definitions([tool])

    assert made["function"]["parameters"] == {"type": "object", "properties": {}}
    assert tool.input_schema == schema


def test_calls_are_read_in_order() -> None:
    calls = read_tool_calls([asked('{"file_path": "/a"}'), asked("", id="call_2", name="Glob")])

    assert calls == [OpenAiCall("call_1", "Read", {"file_path": "/a"}), OpenAiCall("call_2", "Glob", {})]


def test_the_models_of_client_libraries_are_read_as_well() -> None:
    class Function(BaseModel):
        name: str
        arguments: str

    class Call(BaseModel):
        id: str
        type: str = "function"
        function: Function

    call = Call(id="call_1", function=Function(name="Read", arguments='{"file_path": "/a"}'))

    assert read_tool_calls([call]) == [OpenAiCall("call_1", "Read", {"file_path": "/a"})]


def test_a_reply_without_calls_has_none() -> None:
    assert read_tool_calls(None) == read_tool_calls([]) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ('{"file_path": "/a"', "function.arguments is not JSON: Expecting ',' delimiter at line 1, column 19"),
        ("[1]", 'function.arguments wants a JSON object; got "[1]"'),
        ("null", 'function.arguments wants a JSON object; got "null"'),
        ('{"a": 1, "b": 2, "a": 3}', 'function.arguments has "a" twice'),
        ('{"a": {"b": 1, "b": 1}}', 'function.arguments has "b" twice'),
        ('{"a": NaN}', "function.arguments is not JSON: NaN is no number"),
        ("[" * 100_000, "function.arguments is nested too deeply"),
        ({"file_path": "/a"}, "function.arguments wants JSON text; got dict"),
        (None, "function.arguments wants JSON text; got NoneType"),
    ],
    ids=["cut off", "list", "null", "key twice", "inner key twice", "nan", "deep", "object", "none"],
)
def test_bad_arguments_are_that_calls_problem(arguments: Any, said: str) -> None:
    assert problem(asked(arguments)).startswith(said)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (asked("{}", type="custom"), 'a call wants "type": "function"'),
        ({"id": "call_1", "type": "function"}, 'a call wants "type": "function" and a "function" object'),
        (asked("{}", name=""), 'function.name wants a tool\'s name; got ""'),
        (asked("{}", name=5), "function.name wants a tool's name; got 5"),
    ],
)
def test_a_call_that_is_none_is_told_so(call: Any, said: str) -> None:
    assert problem(call).startswith(said)


def test_a_call_that_came_twice_is_run_once() -> None:
    first, second, third = read_tool_calls([asked("{}"), asked("{}"), asked("{}", id="call_2")])

    assert (first.problem, third.problem) == (None, None)
    assert second.problem is not None
    assert second.problem.message == 'the id "call_1" is that of an earlier call'


@pytest.mark.parametrize("calls", ["text", {"id": "x"}, 5, [asked("{}"), 5], [asked("{}", id="")], [asked("{}", id=7)]])
def test_calls_that_nobody_could_answer_are_refused_before_anything_runs(calls: Any) -> None:
    with pytest.raises(ToolError) as caught:
        read_tool_calls(calls)

    assert caught.value.code is ErrorCode.INPUT
    assert "tool_calls" in caught.value.message


@given(st.dictionaries(st.text(), st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists)))
def test_whatever_json_holds_arrives(arguments: dict[str, Any]) -> None:
    (call,) = read_tool_calls([asked(json.dumps(arguments))])
    assert (call.arguments, call.problem) == (arguments, None)


@given(st.text())
def test_whatever_text_comes_is_read_or_refused(text: str) -> None:
    (call,) = read_tool_calls([asked(text)])
    assert (call.problem is None) or call.problem.code is ErrorCode.INPUT


def test_a_result_is_the_message_of_its_call() -> None:
    assert tool_message("call_abc123", text_result("file1.go\nfile2.go")) == {
        "role": "tool",
        "tool_call_id": "call_abc123",
        "content": "file1.go\nfile2.go",
    }


def test_an_error_is_marked_in_the_text() -> None:
    failed = error_result(ToolError(ErrorCode.NOT_FOUND, "file not found: /nonexistent/path", "Use Glob."))

    content = tool_message("c", failed)["content"]

    assert content == "Error: file not found: /nonexistent/path\nUse Glob.\n[E_NOT_FOUND]"


def test_an_upstreams_error_that_says_so_itself_is_marked_once() -> None:
    failed = ToolResult(content=(text_block("Error: no such issue"),), is_error=True)
    assert tool_message("c", failed)["content"] == "Error: no such issue"


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (image_block(b"x" * 3000, "image/png"), "[image: image/png, 3,000 bytes; a tool message holds text only]"),
        (
            {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
            "[audio: audio/wav, 3 bytes; a tool message holds text only]",
        ),
        ({"type": "resource", "resource": {"uri": "a://b", "text": "inside"}}, "inside"),
        (
            {"type": "resource", "resource": {"uri": "a://b", "blob": "AAAA", "mimeType": "application/zip"}},
            "[resource a://b: application/zip, 3 bytes; a tool message holds text only]",
        ),
        ({"type": "resource_link", "uri": "a://b", "name": "notes"}, "[resource a://b: notes]"),
        (
            {"type": "of another kind"},
            "[of another kind: unknown type, 0 bytes; a tool message holds text only]",
        ),
    ],
    ids=["image", "audio", "text resource", "binary resource", "link", "unknown"],
)
def test_what_is_no_text_is_noted(block: dict[str, Any], expected: str) -> None:
    result = ToolResult(content=(text_block("before"), block))
    assert tool_message("c", result)["content"] == f"before\n{expected}"


def test_a_result_of_data_only_is_its_json() -> None:
    assert tool_message("c", ToolResult(structured={"town": "Åby"}))["content"] == '{"town": "Åby"}'


def test_half_a_character_never_reaches_a_request() -> None:
    content = tool_message("c", text_result("a\ud83db\ud83d\ude00"))["content"]

    assert content == "a\ufffdb\U0001f600"


def test_a_message_is_never_empty() -> None:
    assert tool_message("c", text_result(""))["content"] == "(no output)"
    assert tool_message("c", ToolResult(is_error=True))["content"] == "Error: (no output)"


@pytest.mark.parametrize("made", definitions(tool.spec for tool in TOOLS), ids=lambda made: made["function"]["name"])
def test_our_definitions_keep_openais_rules(made: dict[str, Any]) -> None:
    function = made["function"]

    Draft202012Validator.check_schema(function["parameters"])
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", function["name"])
    assert 0 < len(function["description"]) <= MAX_DESCRIPTION_CHARS
    assert function["parameters"]["type"] == "object"
    assert not {"oneOf", "anyOf", "allOf", "enum", "not", "$ref"} & set(function["parameters"])
    assert not list(arrays_without_items(function["parameters"]))


def arrays_without_items(schema: Any) -> Iterator[Any]:
    if isinstance(schema, dict):
        members = cast("dict[str, Any]", schema)
        if members.get("type") == "array" and "items" not in members:
            yield members
        schema = list(members.values())
    if isinstance(schema, list):
        for inner in cast("list[Any]", schema):
            yield from arrays_without_items(inner)
