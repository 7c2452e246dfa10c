"""A conversation on its way to an endpoint."""

from __future__ import annotations

from typing import Any

from goat_mcp.agents.models.chat_completions import openai_messages
from goat_mcp.core.model import ModelMessage, ModelRequest

PIXEL = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}
PIXEL_PART = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def use(id: str, name: str = "Read", **input: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": input}


def result(id: str, *content: dict[str, Any], is_error: bool = False) -> dict[str, Any]:
    return {"type": "tool_result", "toolUseId": id, "content": list(content), "isError": is_error}


def sent(*messages: ModelMessage, system: str = "") -> list[dict[str, Any]]:
    return openai_messages(ModelRequest(messages, system=system))


def user(*content: dict[str, Any]) -> ModelMessage:
    return ModelMessage("user", content)


def assistant(*content: dict[str, Any]) -> ModelMessage:
    return ModelMessage("assistant", content)


def call(id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_a_turn_with_tools_is_told_in_openais_words() -> None:
    told = sent(
        user(text("What is in a.py?")),
        assistant(text("I look."), use("c1", "Read", file_path="/ü.py"), use("c2", "Glob", pattern="*")),
        user(result("c1", text("1\tx"), text("2\ty")), result("c2", text("no such directory"), is_error=True)),
        assistant(text("Two lines.")),
        system="Be brief.",
    )

    assert told == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is in a.py?"},
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [call("c1", "Read", '{"file_path": "/ü.py"}'), call("c2", "Glob", '{"pattern": "*"}')],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "1\tx\n2\ty"},
        {"role": "tool", "tool_call_id": "c2", "content": "Error: no such directory"},
        {"role": "assistant", "content": "Two lines."},
    ]


def test_images_of_results_follow_once_all_results_are_told() -> None:
    told = sent(
        assistant(use("c1"), use("c2")),
        user(result("c1", text("a picture"), PIXEL), result("c2", PIXEL), text("Go on.")),
    )

    assert told[1:] == [
        {"role": "tool", "tool_call_id": "c1", "content": "a picture"},
        {"role": "tool", "tool_call_id": "c2", "content": "(an image, shown in the next message)"},
        {"role": "user", "content": [PIXEL_PART, PIXEL_PART, {"type": "text", "text": "Go on."}]},
    ]


def test_a_users_image_stays_where_it_was() -> None:
    assert sent(user(text("Look:"), PIXEL, text("?")))[0]["content"] == [
        {"type": "text", "text": "Look:"},
        PIXEL_PART,
        {"type": "text", "text": "?"},
    ]


def test_a_call_that_was_never_answered_gets_an_answer_in_its_place() -> None:
    lost = "Error: nothing is known of what became of this call"

    told = sent(
        assistant(use("c1"), use("c2")), user(result("c2", text("b")), text("And now?")), assistant(use("c3", "Glob"))
    )

    assert [message.get("tool_call_id", message["role"]) for message in told] == [
        "assistant",
        "c2",
        "c1",
        "user",
        "assistant",
        "c3",
    ]
    assert (told[2]["content"], told[5]["content"]) == (lost, lost)


def test_an_assistant_that_said_nothing_said_an_empty_text_and_one_that_only_called_none() -> None:
    told = sent(assistant(), user(text("?")), assistant(use("c1")))

    assert told[0] == {"role": "assistant", "content": ""}
    assert told[2]["content"] is None


def test_a_name_that_is_none_does_not_spoil_the_conversation() -> None:
    told = sent(assistant(use("c1", "read the file!"), use("c2", ""), use("c3", "x" * 80)))

    names = [call["function"]["name"] for call in told[0]["tool_calls"]]
    assert names == ["read_the_file_", "unnamed", "x" * 64]
