"""A model behind an endpoint: what it is asked, and what is said where it does not answer."""

from __future__ import annotations

import socket
from collections.abc import Generator
from typing import Any

import pytest

from goat_mcp.agents.models.openai_chat import OpenAiChatModel
from goat_mcp.agents.options import ModelOptions
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.model import ModelMessage, ModelRequest, ModelTool
from goat_mcp.state.secret_references import SecretReferences
from goat_mcp.web.http import HttpClient, HttpOptions
from tests.e2e.scripted_backend import BACKEND_KEY, Answer, Body, Fails, Held, Says, ScriptedBackend

pytestmark = pytest.mark.anyio

HELLO = ModelMessage("user", ({"type": "text", "text": "Hello"},))
ASKED = ModelRequest((HELLO,))


@pytest.fixture(scope="module")
def running_backend() -> Generator[ScriptedBackend]:
    with ScriptedBackend().running() as backend:
        yield backend


@pytest.fixture
def backend(running_backend: ScriptedBackend) -> ScriptedBackend:
    running_backend.forget()
    return running_backend


class Model(OpenAiChatModel):
    """One that does not wait between tries, but says how long it would have."""

    def __init__(self, base_url: str, **options: Any) -> None:
        self.pauses_s: list[float] = []

        async def pause(seconds: float) -> None:
            self.pauses_s.append(seconds)

        settings = {"base_url": base_url, "key": "${BACKEND_KEY}", "model": "main", **options}
        environ = {"BACKEND_KEY": BACKEND_KEY, "BROKEN_KEY": "a\nb"}
        super().__init__(
            HttpClient(HttpOptions()),
            ModelOptions.model_validate(settings),
            references=SecretReferences(environ),
            sleep=pause,
        )

    async def error(self, request: ModelRequest = ASKED) -> ToolError:
        with pytest.raises(ToolError) as refused:
            await self.reply(request)
        shown = refused.value.message + refused.value.suggestion + repr(refused.value.facts)
        assert BACKEND_KEY not in shown
        return refused.value


async def error_of(backend: ScriptedBackend, *answers: Answer, **options: Any) -> ToolError:
    backend.script(*answers)
    return await Model(backend.url, **options).error()


async def test_a_question_reaches_the_endpoint_whole(backend: ScriptedBackend) -> None:
    backend.script(Says("Good day.", input_tokens=7, output_tokens=2))
    schema = {"type": "object", "properties": {"file_path": {"type": "string"}}, "required": ["file_path"]}
    tool = ModelTool("Read", "Read a file", schema)

    reply = await Model(backend.url).reply(
        ModelRequest((HELLO,), system="Be brief.", tools=(tool,), max_tokens=99, effort="high")
    )

    assert (reply.text, reply.stop_reason, reply.model) == ("Good day.", "endTurn", "main")
    assert (reply.input_tokens, reply.output_tokens) == (7, 2)
    (asked,) = backend.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["authorization"] == f"Bearer {BACKEND_KEY}"
    assert asked.body == {
        "model": "main",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}],
        "max_tokens": 99,
        "tools": [
            {"type": "function", "function": {"name": "Read", "description": "Read a file", "parameters": schema}}
        ],
    }


async def test_the_base_url_may_name_the_whole_path(backend: ScriptedBackend) -> None:
    backend.script(Says("yes"))

    await Model(f"{backend.url}/chat/completions").reply(ASKED)

    assert backend.asked[0].path == "/v1/chat/completions"


@pytest.mark.parametrize(
    ("wanted", "sent"),
    [("", "main"), ("sonnet", "gpt-mid"), ("haiku", "main"), ("gpt-9", "gpt-9"), ("claude-x", "claude-x")],
)
async def test_names_of_models_are_the_endpoints(backend: ScriptedBackend, wanted: str, sent: str) -> None:
    backend.script(Says("yes"))

    await Model(backend.url, models={"sonnet": "gpt-mid"}).reply(ModelRequest((HELLO,), model=wanted))

    assert backend.asked[0].body["model"] == sent


async def test_the_default_may_be_one_of_the_names(backend: ScriptedBackend) -> None:
    backend.script(Says("yes"), Says("yes"))
    model = Model(backend.url, model="opus", models={"opus": "gpt-big"})

    await model.reply(ASKED)
    await model.reply(ModelRequest((HELLO,), model="haiku"))

    assert [asked.body["model"] for asked in backend.asked] == ["gpt-big", "gpt-big"]


@pytest.mark.parametrize(("effort", "sent"), [("max", "high"), ("low", None), ("", None), ("extreme", None)])
async def test_effort_is_sent_where_the_settings_say_how(
    backend: ScriptedBackend, effort: str, sent: str | None
) -> None:
    backend.script(Says("yes"))

    await Model(backend.url, reasoning_effort={"max": "high"}).reply(ModelRequest((HELLO,), effort=effort))

    assert backend.asked[0].body.get("reasoning_effort") == sent


async def test_where_no_key_is_set_none_is_sent(backend: ScriptedBackend) -> None:
    error = await error_of(backend, key="")

    assert error.code is ErrorCode.NOT_CONFIGURED
    assert "it wants a key, and agent.key is not set" in error.message


async def test_a_passing_failure_is_tried_again(backend: ScriptedBackend) -> None:
    backend.script(Fails(503), Fails(429, headers={"retry-after": "7"}), Says("at last"))
    model = Model(backend.url)

    reply = await model.reply(ASKED)

    assert reply.text == "at last"
    assert model.pauses_s == [1.0, 7.0]


async def test_tries_come_to_an_end(backend: ScriptedBackend) -> None:
    backend.script(*[Fails(500, "the model tripped")] * 5)

    error = await Model(backend.url).error()

    assert error.code is ErrorCode.MODEL
    assert f"{backend.url} answered 500: the model tripped" in error.message
    assert len(backend.asked) == 3


@pytest.mark.parametrize("later", ["3600", "Wed, 21 Oct 2099 07:28:00 GMT"])
async def test_an_endpoint_that_wants_a_long_time_is_not_waited_for(backend: ScriptedBackend, later: str) -> None:
    backend.script(Fails(429, "slow down", {"retry-after": later}))
    model = Model(backend.url)

    error = await model.error()

    assert error.code is ErrorCode.RATE
    assert "slow down" in error.message
    assert (model.pauses_s, len(backend.asked)) == ([], 1)


async def test_used_up_money_is_not_asked_for_again(backend: ScriptedBackend) -> None:
    backend.script(Body(b'{"error": {"message": "quota", "code": "insufficient_quota"}}', status=429))

    error = await Model(backend.url).error()

    assert (error.code, len(backend.asked)) == (ErrorCode.RATE, 1)


async def test_a_wrong_key_names_the_setting(backend: ScriptedBackend) -> None:
    error = await error_of(backend, key="sk-wrong-one")

    assert error.code is ErrorCode.NOT_CONFIGURED
    assert "does not take the key of agent.key" in error.message
    assert "sk-wrong-one" not in error.message + error.suggestion
    assert "agent.key" in error.suggestion


async def test_a_key_that_the_endpoint_repeats_is_not_shown(backend: ScriptedBackend) -> None:
    repeated = await error_of(backend, Fails(403, f"{BACKEND_KEY} is not enough"))
    answered = await error_of(backend, Body(f"your key {BACKEND_KEY} is fine".encode(), "text/plain"))

    assert "(the key) is not enough" in repeated.message
    assert "your key (the key) is fine" in answered.message


@pytest.mark.parametrize(("key", "said"), [("${NO_SUCH_KEY}", "NO_SUCH_KEY"), ("${BROKEN_KEY}", "line end")])
async def test_a_key_that_cannot_be_used_is_named_before_anything_is_sent(
    backend: ScriptedBackend, key: str, said: str
) -> None:
    error = await error_of(backend, key=key)

    assert (error.code, backend.asked) == (ErrorCode.NOT_CONFIGURED, [])
    assert "agent.key" in error.message
    assert said in error.message


@pytest.mark.parametrize(
    ("failure", "named"),
    [
        (Fails(404, "The model `gpt-0` does not exist"), "it has no model 'gpt-0', which agent.models.opus names"),
        (Fails(400, "Invalid model name passed in model=gpt-0"), "it has no model 'gpt-0', which agent.models.opus"),
        (Fails(404, "Not Found"), "there are no chat completions there: Not Found"),
        (Fails(307, "", {"location": "/elsewhere"}), "there are no chat completions there"),
    ],
)
async def test_what_is_not_there_names_the_setting(backend: ScriptedBackend, failure: Fails, named: str) -> None:
    backend.script(failure)

    error = await Model(backend.url, models={"opus": "gpt-0"}).error(ModelRequest((HELLO,), model="opus"))

    assert error.code is ErrorCode.NOT_CONFIGURED
    assert named in error.message
    assert len(backend.asked) == 1


async def test_no_model_named_anywhere_is_said_before_anything_is_sent(backend: ScriptedBackend) -> None:
    model = Model(backend.url, model="")

    default, alias = await model.error(), await model.error(ModelRequest((HELLO,), model="fable"))

    assert (default.code, alias.code, backend.asked) == (ErrorCode.NOT_CONFIGURED, ErrorCode.NOT_CONFIGURED, [])
    assert "agent.model is not set" in default.message
    assert "agent.models.fable or agent.model is not set" in alias.message


async def test_a_question_the_model_cannot_take_says_why(backend: ScriptedBackend) -> None:
    error = await error_of(backend, Fails(400, "context length exceeded"))

    assert error.code is ErrorCode.MODEL
    assert "refuses the question: context length exceeded" in error.message


async def test_the_other_name_of_the_limit_is_learned(backend: ScriptedBackend) -> None:
    unsupported = Fails(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
    backend.script(unsupported, Says("one"), Says("two"))
    model = Model(backend.url)

    assert [(await model.reply(ASKED)).text, (await model.reply(ASKED)).text] == ["one", "two"]
    limits = [[name for name in asked.body if name.startswith("max_")] for asked in backend.asked]
    assert limits == [["max_tokens"], ["max_completion_tokens"], ["max_completion_tokens"]]


@pytest.mark.parametrize("answer", [b"<html>hello</html>", b'{"choices": []}', b"", b"{}"])
async def test_an_answer_that_is_no_completion_is_an_error(backend: ScriptedBackend, answer: bytes) -> None:
    error = await error_of(backend, Body(answer))

    assert error.code is ErrorCode.MODEL
    assert f"{backend.url} sent no usable answer of 'main'" in error.message
    assert "agent.base_url" in error.suggestion


async def test_an_endpoint_that_does_not_run_names_the_setting() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        error = await Model(f"http://127.0.0.1:{taken.getsockname()[1]}/v1").error()

    assert error.code is ErrorCode.NETWORK
    assert "agent.base_url" in error.message
    assert "that the endpoint runs" in error.suggestion


async def test_an_answer_that_does_not_come_names_the_setting(backend: ScriptedBackend) -> None:
    held = Held(Says("too late"))

    error = await error_of(backend, held, timeout_s=0.5)
    held.release.set()

    assert error.code is ErrorCode.NETWORK
    assert "agent.timeout_s" in error.suggestion
    assert len(backend.asked) == 1
