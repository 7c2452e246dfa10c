"""WebFetch's prompt, answered by the model of a real client, in both protocol eras, or by nobody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.client.context import ClientRequestContext
from mcp.shared.exceptions import MCPError

from tests.server.test_adapter import both_eras, connected, gateway
from tests.web.http.local_server import page, serving

pytestmark = pytest.mark.anyio

BOUND_S = 60


class Model:
    """Answers every request alike, or refuses."""

    def __init__(self, says: str | None) -> None:
        self._says = says
        self.asked: list[types.CreateMessageRequestParams] = []

    async def __call__(
        self, context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult:
        self.asked.append(params)
        if self._says is None:
            raise MCPError(types.INVALID_REQUEST, "the user said no")
        content = types.TextContent(type="text", text=self._says)
        return types.CreateMessageResult(role="assistant", content=content, model="m", stop_reason="endTurn")


async def fetched(folder: Path, mode: str, **client_options: Any) -> types.CallToolResult:
    async with serving({"/": page("<h1>Prices</h1><p>Hay costs 4.")}) as server:
        served = gateway(folder, web={"allow_hosts": f"127.0.0.1:{server.port}"})
        with anyio.fail_after(BOUND_S):
            async with connected(served, mode, **client_options) as client:
                return await client.call_tool("WebFetch", {"url": server.url(), "prompt": "What does hay cost?"})


def text_of(result: types.CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")


@both_eras
async def test_the_clients_own_model_answers(tmp_path: Path, mode: str) -> None:
    model = Model("Four.")

    result = await fetched(tmp_path, mode, sampling_callback=model)

    (asked,) = model.asked
    (question,) = asked.messages[0].content_as_list
    assert question.type == "text"
    assert "# Prices\n\nHay costs 4." in question.text
    assert question.text.endswith("What does hay cost?")
    assert "\nFour.\nanswer from page " in text_of(result)
    assert "Hay costs" not in text_of(result)
    assert not result.is_error


async def test_web_004_a_client_whose_model_refuses_gets_the_page(tmp_path: Path) -> None:
    """In 2026-07-28 a client has no way to refuse but to give up the call."""
    result = await fetched(tmp_path, "legacy", sampling_callback=Model(None))

    assert "# Prices\n\nHay costs 4.\nweb page " in text_of(result)
    assert "[no answer to the prompt (the client's model gave no answer:" in text_of(result)
    assert not result.is_error


@both_eras
async def test_web_004_a_client_whose_model_says_nothing_gets_the_page(tmp_path: Path, mode: str) -> None:
    result = await fetched(tmp_path, mode, sampling_callback=Model(" "))

    assert "# Prices\n\nHay costs 4.\nweb page " in text_of(result)
    assert "[no answer to the prompt (the model said nothing); this is the page]" in text_of(result)


@both_eras
async def test_web_004_a_client_without_sampling_gets_the_page(tmp_path: Path, mode: str) -> None:
    result = await fetched(tmp_path, mode)

    assert "# Prices\n\nHay costs 4.\nweb page " in text_of(result)
    assert "[there is no model to answer the prompt; this is the page]" in text_of(result)
    assert not result.is_error
