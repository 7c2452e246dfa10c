"""What endpoints answer: as it should be, as it is, and as no one can read it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from goat_mcp.agents.models.chat_completions import NotACompletion, openai_messages, read_completion
from goat_mcp.core.model import ModelMessage, ModelReply, ModelRequest, malformed_arguments


def body(message: dict[str, Any], finish_reason: Any = "stop", **more: Any) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish_reason}
    return json.dumps({"choices": [choice], "model": "m-1", **more}).encode()


def call(arguments: Any, id: Any = "c1", name: Any = "Read", **more: Any) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}, **more}


def uses(*calls: dict[str, Any]) -> list[dict[str, Any]]:
    return list(read_completion(body({"content": None, "tool_calls": list(calls)}, "tool_calls")).tool_uses)


def test_text_and_its_cost() -> None:
    reply = read_completion(body({"content": "Hello"}, usage={"prompt_tokens": 12, "completion_tokens": 3}))

    assert reply == ModelReply(({"type": "text", "text": "Hello"},), "endTurn", "m-1", 12, 3)


def test_calls_with_what_was_said_before_them() -> None:
    reply = read_completion(body({"content": "I look.", "tool_calls": [call('{"file_path": "/a"}')]}, "tool_calls"))

    assert reply.content == (
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "c1", "name": "Read", "input": {"file_path": "/a"}},
    )
    assert reply.stop_reason == "toolUse"


@pytest.mark.parametrize(
    ("message", "finish_reason", "stop_reason"),
    [
        ({"content": "x"}, "length", "maxTokens"),
        ({"content": "x", "tool_calls": [call('{"a": 1')]}, "length", "maxTokens"),
        ({"content": "x"}, None, "endTurn"),
        ({"content": "x"}, "content_filter", "endTurn"),
        ({"content": "x"}, "tool_calls", "endTurn"),
        ({"content": "x", "tool_calls": [call("{}")]}, "stop", "toolUse"),
    ],
)
def test_why_it_stopped(message: dict[str, Any], finish_reason: Any, stop_reason: str) -> None:
    assert read_completion(body(message, finish_reason)).stop_reason == stop_reason


@pytest.mark.parametrize("arguments", ["", "  ", None, "{}", {}])
def test_no_arguments_in_whatever_way(arguments: Any) -> None:
    assert uses(call(arguments)) == [{"type": "tool_use", "id": "c1", "name": "Read", "input": {}}]


def test_arguments_may_come_as_an_object() -> None:
    assert uses(call({"a": [1, "ü"]}))[0]["input"] == {"a": [1, "ü"]}


@pytest.mark.parametrize("arguments", ['{"a": ', "[1]", "null", '{"a": 1, "a": 2}', 7, '{"a": NaN}'])
def test_arguments_that_cannot_be_read_come_back_as_a_use_that_says_so(arguments: Any) -> None:
    use = uses(call(arguments))[0]

    assert (use["id"], use["name"], use["input"]) == ("c1", "Read", {})
    assert malformed_arguments(use).startswith("function.arguments ")
    assert malformed_arguments(uses(call("{}"))[0]) == ""


def test_a_call_without_a_name_comes_back_as_one_that_cannot_be_run() -> None:
    assert "function.name" in malformed_arguments(uses(call("{}", name=None))[0])


def test_calls_without_ids_of_their_own_can_still_be_told_apart() -> None:
    ids = [
        use["id"] for use in uses(call("{}", id="call_1"), call("{}", id=None), call("{}", id=""), call("{}", id=""))
    ]
    same = [use["id"] for use in uses(call("{}", id="x"), call("{}", id="x"))]

    assert len({*ids}) == 4
    assert ids[0] == "call_1"
    assert len({*same}) == 2


def test_a_refusal_and_text_in_parts_are_text() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "other"}, {"type": "text", "text": "b"}]

    assert read_completion(body({"content": None, "refusal": "I will not."})).text == "I will not."
    assert read_completion(body({"content": parts})).text == "ab"


def test_nothing_said_is_an_answer() -> None:
    assert read_completion(body({"content": ""})).content == ()


def test_what_the_provider_wants_back_goes_back() -> None:
    thoughts = [{"type": "thinking", "thinking": "hm", "signature": "s"}]
    signed = {"google": {"thought_signature": "t"}}
    message = {"content": None, "thinking_blocks": thoughts, "tool_calls": [call("{}", extra_content=signed)]}

    reply = read_completion(body(message, "tool_calls"))
    told = openai_messages(ModelRequest((ModelMessage("assistant", reply.content),)))[0]

    assert told["thinking_blocks"] == thoughts
    assert told["tool_calls"] == [call("{}", extra_content=signed)]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"", "nothing at all"),
        (b"<html>Bad gateway</html>", "no JSON: '<html>Bad gateway</html>'"),
        (b"[]", "without choices"),
        (b'{"choices": []}', "without choices"),
        (b'{"choices": null, "error": {"message": "no credits"}}', "no credits"),
        (b'{"choices": [{"finish_reason": "stop"}]}', "without a message"),
        (b'{"choices": ["x"]}', "without a message"),
        (body({"content": None}, "content_filter"), "content filter"),
        (b"[" * 100_000, "no JSON"),
    ],
)
def test_what_is_no_completion(answer: bytes, said: str) -> None:
    with pytest.raises(NotACompletion, match=said):
        read_completion(answer)


@pytest.mark.parametrize("usage", [None, [], {"prompt_tokens": "many", "completion_tokens": -1}])
def test_a_count_that_is_none_is_unknown(usage: Any) -> None:
    reply = read_completion(body({"content": "x"}, usage=usage))

    assert (reply.input_tokens, reply.output_tokens) == (None, None)
