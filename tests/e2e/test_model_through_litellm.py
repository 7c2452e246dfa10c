"""Chat completions of ours against a real LiteLLM proxy: turns with tools, and what can be wrong with the settings."""

from __future__ import annotations

from typing import Any

import pytest

from goat_mcp.agents.models.openai_chat import OpenAiChatModel
from goat_mcp.agents.options import ModelOptions
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.model import ModelMessage, ModelRequest, ModelTool, malformed_arguments
from goat_mcp.web.http import HttpClient, HttpOptions
from tests.e2e.litellm_proxy import LiteLlm, in_one_worker
from tests.e2e.scripted_backend import BACKEND_KEY, Calls, Fails, Says, ToolCall

pytestmark = [pytest.mark.anyio, in_one_worker, pytest.mark.full]

HELLO = ModelMessage("user", ({"type": "text", "text": "What is in a.py?"},))
READ = ModelTool(
    "Read", "Read a file", {"type": "object", "properties": {"file_path": {"type": "string"}}, "required": []}
)
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def model(litellm: LiteLlm, **options: Any) -> OpenAiChatModel:
    settings = {"base_url": litellm.url, "key": litellm.key, "model": litellm.model, **options}

    async def no_pause(seconds: float) -> None: ...

    return OpenAiChatModel(HttpClient(HttpOptions()), ModelOptions.model_validate(settings), sleep=no_pause)


async def error_of(model: OpenAiChatModel, wanted: str = "") -> ToolError:
    with pytest.raises(ToolError) as refused:
        await model.reply(ModelRequest((HELLO,), model=wanted))
    assert BACKEND_KEY not in refused.value.message
    return refused.value


async def test_two_turns_with_a_tool_and_a_picture(litellm: LiteLlm) -> None:
    litellm.backend.script(
        Calls((ToolCall("Read", {"file_path": "/a.py"}, "call_a"), ToolCall("Read", '{"file', "call_b")), "I look."),
        Says("A picture.", input_tokens=31, output_tokens=6),
    )
    chat = model(litellm)

    first = await chat.reply(ModelRequest((HELLO,), system="Be brief.", tools=(READ,)))
    results = (
        {
            "type": "tool_result",
            "toolUseId": "call_a",
            "content": [
                {"type": "text", "text": "one picture"},
                {"type": "image", "data": PIXEL, "mimeType": "image/png"},
            ],
        },
        {
            "type": "tool_result",
            "toolUseId": "call_b",
            "content": [{"type": "text", "text": "not JSON"}],
            "isError": True,
        },
    )
    second = await chat.reply(
        ModelRequest((HELLO, ModelMessage("assistant", first.content), ModelMessage("user", results)), tools=(READ,))
    )

    assert (first.text, first.stop_reason) == ("I look.", "toolUse")
    assert [(use["id"], use["input"]) for use in first.tool_uses] == [
        ("call_a", {"file_path": "/a.py"}),
        ("call_b", {}),
    ]
    assert [bool(malformed_arguments(use)) for use in first.tool_uses] == [False, True]
    assert (second.text, second.input_tokens, second.output_tokens) == ("A picture.", 31, 6)
    told = litellm.backend.asked[1].messages
    assert [message["role"] for message in told] == ["user", "assistant", "tool", "tool", "user"]
    assert [message["content"] for message in told[2:4]] == ["one picture", "Error: not JSON"]
    assert told[4]["content"][0]["image_url"]["url"] == f"data:image/png;base64,{PIXEL}"


async def test_another_model_and_an_effort(litellm: LiteLlm) -> None:
    litellm.backend.script(Says("hm"))
    chat = model(litellm, models={"opus": litellm.other_model}, reasoning_effort={"max": "high"})

    await chat.reply(ModelRequest((HELLO,), model="opus", effort="max"))

    body = litellm.backend.asked[0].body
    assert (body["model"], body["reasoning_effort"]) == (litellm.other_model, "high")


async def test_a_key_that_litellm_does_not_take_names_the_setting(litellm: LiteLlm) -> None:
    wrong = await error_of(model(litellm, key="sk-not-the-master-key"))
    none = await error_of(model(litellm, key=""))

    assert (wrong.code, none.code) == (ErrorCode.NOT_CONFIGURED, ErrorCode.MODEL)
    assert "does not take the key of agent.key" in wrong.message
    assert "agent.key is not set" in none.suggestion
    assert "sk-not-the-master-key" not in wrong.message
    assert litellm.backend.asked == []


async def test_a_model_that_litellm_does_not_have_names_the_setting(litellm: LiteLlm) -> None:
    error = await error_of(model(litellm, models={"sonnet": "gpt-0"}), "sonnet")

    assert error.code is ErrorCode.NOT_CONFIGURED
    assert "it has no model 'gpt-0', which agent.models.sonnet names" in error.message


async def test_a_wrong_path_names_the_setting(litellm: LiteLlm) -> None:
    error = await error_of(model(litellm, base_url=litellm.url + "/elsewhere"))

    assert error.code is ErrorCode.NOT_CONFIGURED
    assert "agent.base_url" in error.suggestion


@pytest.mark.parametrize(
    ("failure", "code", "asked"),
    [(Fails(500, "tripped"), ErrorCode.MODEL, 3), (Fails(400, "too long"), ErrorCode.MODEL, 1)],
)
async def test_a_model_that_fails_behind_litellm_is_told_as_it_is(
    litellm: LiteLlm, failure: Fails, code: ErrorCode, asked: int
) -> None:
    litellm.backend.script(*[failure] * 3)

    error = await error_of(model(litellm))

    assert (error.code, len(litellm.backend.asked)) == (code, asked)
    assert failure.message in error.message


async def test_too_many_questions_are_asked_again(litellm: LiteLlm) -> None:
    litellm.backend.script(Fails(429, "slow down", {"retry-after": "1"}), Says("now"))

    assert (await model(litellm).reply(ModelRequest((HELLO,)))).text == "now"
