"""The LiteLLM proxy that other tests lean on: real, in front of a scripted model, and strict about its key."""

from __future__ import annotations

import pytest

from tests.e2e.litellm_proxy import LiteLlm, in_one_worker
from tests.e2e.scripted_backend import BACKEND_KEY, Fails, Says, calls

pytestmark = [in_one_worker, pytest.mark.full]

HELLO = {"role": "user", "content": "Hello"}


def test_a_completion_goes_through_the_proxy_to_the_model_and_back(litellm: LiteLlm) -> None:
    litellm.backend.script(Says("Good day.", input_tokens=21, output_tokens=4))

    status, body = litellm.complete([HELLO])

    assert status == 200
    assert body["choices"][0]["message"]["content"] == "Good day."
    assert (body["usage"]["prompt_tokens"], body["usage"]["completion_tokens"]) == (21, 4)
    assert litellm.backend.asked[0].messages == [HELLO]
    assert litellm.backend.asked[0].headers["authorization"] == f"Bearer {BACKEND_KEY}"


def test_tools_reach_the_model_and_their_calls_come_back(litellm: LiteLlm) -> None:
    litellm.backend.script(calls("Read", file_path="/a"))
    schema = {"type": "object", "properties": {"file_path": {"type": "string"}}}
    tool = {"type": "function", "function": {"name": "Read", "parameters": schema}}

    status, body = litellm.complete([HELLO], tools=[tool])

    assert status == 200
    assert body["choices"][0]["finish_reason"] == "tool_calls"
    assert body["choices"][0]["message"]["tool_calls"][0]["function"] == {
        "name": "Read",
        "arguments": '{"file_path": "/a"}',
    }
    assert litellm.backend.asked[0].body["tools"] == [tool]


def test_a_failure_of_the_model_is_asked_for_once_and_shown_as_it_is(litellm: LiteLlm) -> None:
    litellm.backend.script(Fails(500, "the model tripped"), Says("never reached"))

    status, body = litellm.complete([HELLO])

    assert status == 500
    assert "the model tripped" in body["error"]["message"]
    assert (len(litellm.backend.asked), litellm.backend.unsaid) == (1, 1)
