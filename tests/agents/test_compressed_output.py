"""What an agent's model reads of its commands: compressed for a model on this machine, and for one settings name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.agents.scripted import ScriptedModel, ground, results_in, says, use

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, False),
        ({"agent": {"base_url": "https://models.example/v1"}}, False),
        ({"agent": {"base_url": "http://127.0.0.1:11434/v1"}}, True),
        ({"agent": {"base_url": "http://127.0.0.1:11434/v1"}, "bash": {"compress_output": False}}, False),
        # `scripted` is what this model answers as.
        ({"bash": {"compress_output_of_model": {"scripted": True}}}, True),
        ({"bash": {"compress_output_of_model": {"script*": False}, "compress_output": True}}, False),
    ],
)
async def test_an_agents_command_is_compressed_for_its_model(
    tmp_path: Path, settings: dict[str, Any], expected: bool
) -> None:
    model = ScriptedModel([says("", use("Bash", {"command": "ls -la listing"}, "t1")), says("done")])
    async with ground(tmp_path, model, **settings) as on:
        (on.workspace / "listing").mkdir()
        for number in range(20):
            (on.workspace / "listing" / f"file-{number}.txt").touch()

        await on.agent("Which files are there?")

    (read,) = results_in(model.requests[1].messages[-1])
    assert ("[compressed from " in read) is expected
    assert read.startswith("file-0.txt\n" if expected else "total ")
