"""Which model a call comes from, as the call says it, and which endpoints are the user's own."""

from __future__ import annotations

from typing import Any

import pytest

from goat_mcp.agents.models.choice import is_local
from goat_mcp.core.context import ToolContext, calling_model
from goat_mcp.core.model import CallingModel


@pytest.mark.parametrize(
    ("meta", "names"),
    [
        ({}, ()),
        ({"goat-mcp/model": "qwen3:8b"}, ("qwen3:8b",)),
        ({"x-codex-turn-metadata": {"model": "gpt-5.5", "reasoning_effort": "high"}}, ("gpt-5.5",)),
        ({"x-codex-turn-metadata": '{"model": "gpt-5.5"}'}, ("gpt-5.5",)),
        ({"goat-mcp/model": "a", "x-codex-turn-metadata": {"model": "b"}}, ("a",)),
        ({"goat-mcp/model": "a" * 201}, ()),
        ({"goat-mcp/model": 3}, ()),
        ({"x-codex-turn-metadata": "[" * 100_000}, ()),
        ({"x-codex-turn-metadata": ["model"]}, ()),
        ({"x-codex-turn-metadata": {"model": None}}, ()),
    ],
)
def test_a_clients_call_says_its_model_or_not(meta: dict[str, Any], names: tuple[str, ...]) -> None:
    found = calling_model(ToolContext(call_id="c", meta=meta))

    assert found == (CallingModel(names) if names else None)


def test_one_of_our_agents_calls_as_its_own_model_whatever_its_starters_client_said() -> None:
    own = CallingModel(("qwen3:8b",), is_local=True)

    assert calling_model(ToolContext(call_id="c", model=own, meta={"goat-mcp/model": "gpt-5.5"})) == own


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://localhost:8000/v1", True),
        ("http://127.0.0.1:8080/v1", True),
        ("http://127.3.2.1/v1", True),
        ("http://[::1]:8080/v1", True),
        ("http://box.localhost/v1", True),
        ("http://host.docker.internal:9000/v1", True),
        ("http://ollama:8000/v1", True),
        ("https://lm-studio.home.arpa/v1", True),
        ("http://192.168.1.5:11434/v1", True),
        ("http://desk.home.arpa:1234/v1", True),
        ("http://192.168.1.5:8000/v1", False),
        ("https://models.example/v1", False),
        ("https://localhost.example/v1", False),
        ("https://notollama.example/v1", False),
        ("", False),
    ],
)
def test_an_endpoint_is_the_users_own_or_not(url: str, expected: bool) -> None:
    assert is_local(url) is expected
