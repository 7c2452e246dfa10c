"""Notes, files, JSON and text: the shipped tools of this machine, called by a real client of a real server."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.e2e.goat import Launch, connected

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_a_client_calls_each_of_them_and_reads_the_list_of_notes(launch: Launch, era: str) -> None:
    on = ("--toolset", "goa", "--toolset", "base", "--set", 'tools={"memento":{"in_instructions":true}}')
    note = launch.workspace / ".goa" / "memory" / "plan.md"
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text("# The plan\n")

    async with connected(replace(launch, options=(*launch.options, *on)), era) as client:

        async def call(tool: str, **arguments: Any) -> Any:
            return (await client.call_tool(tool, arguments)).structured_content

        written = await call("file-system__write", path="a.json", content='{"n": [1, 2]}')
        read = await call("file-system__read", path="a.json")
        found = await call("json-query__query", data=read["content"], query="n[-1]")
        text = await call("text-transform__transform", text="a", operations=[{"op": "case", "to": "upper"}])
        await call("memento__note", action="append", name="plan", content="More.\n")
        mode = await call("goa_command__run", command="mode")
        told = client.instructions
        listed = await client.read_resource("goat://memory")

    assert (written["type"], found, text, mode) == ("create", {"result": 2}, {"result": "A"}, {"mode": "default"})
    if era == "legacy":  # a client of the later era that names its revision asks for no instructions
        assert "- plan (project): The plan" in (told or "")
    assert note.read_text() == "# The plan\nMore.\n"
    assert '"heading": "The plan"' in str(getattr(listed.contents[0], "text", ""))
