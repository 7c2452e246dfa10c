"""The entry that `goat-mcp install` writes, started as a host with windows starts it: in `/`, without roots."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from tests.cli.test_import import done

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]


async def answers(home: Path, entry: dict[str, Any], **calls: dict[str, Any]) -> dict[str, Any]:
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(home), **entry["env"]}
    launch = StdioServerParameters(command=entry["command"], args=entry["args"], env=environment, cwd="/")
    async with Client(launch) as client:
        return {name: await client.call_tool(name, arguments) for name, arguments in calls.items()}


def entry_of(home: Path) -> dict[str, Any]:
    file = home / ".config" / "Claude" / "claude_desktop_config.json"
    return json.loads(file.read_text())["mcpServers"]["goat"]


async def test_with_a_workspace_its_file_tools_and_commands_work(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "note.txt").write_text("hello from the workspace\n")
    done("install", "claude-desktop", "--workspace", "work", "--mode", "bypassPermissions", cwd=tmp_path)

    found = await answers(
        tmp_path, entry_of(tmp_path), Read={"file_path": str(work / "note.txt")}, Bash={"command": "pwd"}
    )

    assert "hello from the workspace" in found["Read"].content[0].text
    assert str(work) in found["Bash"].content[0].text


async def test_without_one_they_answer_what_install_said_and_its_command_helps(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("hello\n")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "note.txt").write_text("hello\n")
    said = done("install", "claude-desktop", cwd=tmp_path).stdout
    file = str(tmp_path / "work" / "note.txt")

    before = await answers(tmp_path, entry_of(tmp_path), Read={"file_path": file})
    command = said.partition("until you run: goat-mcp ")[2].splitlines()[0].replace("DIR", "work").split()
    done(*command, cwd=tmp_path)
    after = await answers(tmp_path, entry_of(tmp_path), Read={"file_path": file})

    assert before["Read"].is_error and "E_NO_WORKSPACE" in before["Read"].content[0].text
    assert "hello" in after["Read"].content[0].text
