"""A client that says which model it works for: its commands are compressed as the settings say of that name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mcp_types as types
import pytest

from tests.server.test_adapter import both_eras, connected, gateway

pytestmark = pytest.mark.anyio


@both_eras
@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        (None, False),
        ({"goat-mcp/model": "qwen3:8b"}, True),
        ({"goat-mcp/model": "gpt-5.5"}, False),
        ({"x-codex-turn-metadata": {"model": "qwen3:8b", "session_id": "s"}}, True),
    ],
)
async def test_a_clients_model_decides(tmp_path: Path, mode: str, meta: Any, expected: bool) -> None:
    folder = tmp_path / "ws"
    (folder / "listing").mkdir(parents=True)
    for number in range(20):
        (folder / "listing" / f"file-{number}.txt").touch()
    served = gateway(tmp_path, workspace=[folder], bash={"compress_output_of_model": {"qwen*": True}})

    async with connected(served, mode) as client:
        result = await client.call_tool("Bash", {"command": "ls -la listing"}, meta=meta)

    (block,) = result.content
    assert isinstance(block, types.TextContent)
    assert block.text.startswith("file-0.txt\n" if expected else "total ")
    assert ("[compressed from " in block.text) is expected
