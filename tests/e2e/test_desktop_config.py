"""`claude_desktop_config.example.json` starts what it says."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import StdioServerParameters

from tests.e2e.conftest import fill
from tests.e2e.goat import REPOSITORY, Launch, connected
from tests.e2e.test_clients import BUILT_IN

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]


@pytest.fixture
def entry() -> dict[str, Any]:
    text = (REPOSITORY / "claude_desktop_config.example.json").read_text()
    (only,) = json.loads(text)["mcpServers"].values()
    return only


async def test_what_the_example_names_starts_and_lists_its_tools(entry: dict[str, Any], tmp_path: Path) -> None:
    documents = fill(tmp_path / "Documents")
    launch = Launch(tmp_path, documents, variables={"HOME": str(tmp_path), **entry.get("env", {})})
    # A desktop program starts servers from the root directory.
    example = StdioServerParameters(
        command=installed(entry["command"]), args=entry["args"], env=launch.environment, cwd="/"
    )

    async with connected(example, "auto") as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        found = await client.call_tool("Glob", {"pattern": "*.md"})

    assert sorted(names) == BUILT_IN
    assert found.content[0].model_dump()["text"] == str(documents / "notes.md")


def installed(command: str) -> str:
    """The program of that name in the environment under test, as a user's PATH would find it."""
    name = Path(command).name
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.exists() else shutil.which(name) or command
