"""Which model a call may use."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from goat_mcp.agents.models.choice import ModelChoice
from goat_mcp.agents.options import ModelOptions
from goat_mcp.core.context import ToolContext
from goat_mcp.core.model import ModelMessage, ModelReply, ModelRequest
from goat_mcp.web.http import HttpClient, HttpOptions
from tests.e2e.scripted_backend import BACKEND_KEY, Says, ScriptedBackend

pytestmark = pytest.mark.anyio

ASKED = ModelRequest((ModelMessage("user", ({"type": "text", "text": "Hello"},)),))


class HostModel:
    takes_tools = False

    async def reply(self, request: ModelRequest) -> ModelReply:
        return ModelReply(({"type": "text", "text": "from the host"},))


HOST = HostModel()


@pytest.fixture(scope="module")
def backend() -> Generator[ScriptedBackend]:
    with ScriptedBackend().running() as backend:
        yield backend


def choice(base_url: str = "") -> ModelChoice:
    options = ModelOptions.model_validate({"base_url": base_url, "key": BACKEND_KEY, "model": "main"})
    return ModelChoice(HttpClient(HttpOptions()), options)


def test_without_an_endpoint_it_is_the_hosts_model_or_none() -> None:
    assert choice().for_call(ToolContext(call_id="c", host_model=HOST)) is HOST
    assert choice().for_call(ToolContext(call_id="c")) is None
    assert choice().endpoint() is None


async def test_the_users_endpoint_comes_first(backend: ScriptedBackend) -> None:
    backend.script(Says("from the endpoint"))

    model = choice(backend.url).for_call(ToolContext(call_id="c", host_model=HOST))

    assert model is not None
    assert (await model.reply(ASKED)).text == "from the endpoint"
    assert model.takes_tools


async def test_a_session_may_have_set_another_default(backend: ScriptedBackend) -> None:
    backend.forget()
    backend.script(Says("a"), Says("b"))
    choices = choice(backend.url)

    for overrides in ({"agent.model": "other"}, {}):
        model = choices.for_call(ToolContext(call_id="c", overrides=overrides))
        assert model is not None
        await model.reply(ASKED)

    assert [asked.body["model"] for asked in backend.asked] == ["other", "main"]
