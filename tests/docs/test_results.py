"""Each answer on the page about results is what a client gets for the call above it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory
from tests.docs.test_documents import ROOT, blocks
from tests.server.test_adapter import connected

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

SHOWN_PROJECT = "/home/you/project"
SHOWN_MEMBERS = ("content", "structuredContent", "_meta", "isError")
Example = tuple[dict[str, Any], list[dict[str, Any]]]


def examples() -> list[Example]:
    """Calls, each with what is shown below it: the answer, and that with `always` if it is another."""
    found: list[Example] = []
    for block in map(json.loads, blocks(ROOT / "docs" / "results.md", "json")):
        if "name" in block:
            found.append((block, []))
        else:
            found[-1][1].append(block)
    return found


@pytest.mark.parametrize("structured", ["auto", "always"])
async def test_a_client_gets_what_the_page_shows(tmp_path: Path, structured: str) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "notes.txt").write_text("buy hay\n")
    servers = tmp_path / "servers.json"
    weather = {"command": sys.executable, "args": [str(ROOT / "examples" / "weather_stdio.py")]}
    servers.write_text(json.dumps({"mcpServers": {"weather": weather}}))
    settings = {
        "workspace": [project],
        "upstreams": [servers],
        "mode": "bypassPermissions",
        "sandbox": "off",
        "output": {"structured": structured},
        "catalog": {"toolsets": ["core", "state", "base", "upstream"]},
    }
    served = Gateway(
        Settings.model_validate(settings), approval=Approval.HOST, state=StateDirectory(tmp_path / "state")
    )

    async with connected(served, "legacy") as client:
        await served.upstreams.relist("weather", 60)
        got = [await answer(client, call, project) for call, _ in examples()]

    assert len(got) == 8
    assert got == [answers[-1] if structured == "always" else answers[0] for _, answers in examples()]


async def answer(client: Client, call: dict[str, Any], project: Path) -> dict[str, Any]:
    arguments = json.loads(json.dumps(call["arguments"]).replace(SHOWN_PROJECT, str(project)))
    try:
        result = await client.call_tool(call["name"], arguments)
    except MCPError as error:
        return {"error": {"code": error.code, "message": error.message}}
    wire = result.model_dump(by_alias=True, exclude_unset=True, mode="json")
    shown = {name: wire[name] for name in SHOWN_MEMBERS if name in wire}
    for facts in (shown.get("structuredContent"), shown.get("_meta", {}).get("goat-mcp/facts")):
        if facts and "duration_ms" in facts:
            facts["duration_ms"] = 12
    return json.loads(json.dumps(shown).replace(str(project), SHOWN_PROJECT))
