"""The servers in `examples/`, alone and behind goat-mcp."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator

import pytest
from mcp import StdioServerParameters

from examples.notes_http import Notes
from tests.e2e.goat import REPOSITORY, Launch, connected, listed_with, wait_for_url
from tests.e2e.processes import end

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]

EXAMPLES = REPOSITORY / "examples"
WEATHER = StdioServerParameters(command=sys.executable, args=[str(EXAMPLES / "weather_stdio.py")])


@pytest.fixture
def notes_url() -> Generator[str]:
    command = [sys.executable, str(EXAMPLES / "notes_http.py"), "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        yield wait_for_url(process)
    finally:
        end(process)


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_the_weather_server_answers_with_structure_and_progress(mode: str) -> None:
    seen: list[str | None] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        seen.append(message)

    async with connected(WEATHER, mode) as client:
        tools = (await client.list_tools()).tools
        survey = await client.call_tool("survey_towns", {}, progress_callback=note)
        unknown = await client.call_tool("current_weather", {"town": "Atlantis"})

    assert all(tool.title and tool.annotations and tool.output_schema for tool in tools)
    assert survey.structured_content == {
        "warmest": "Brightwater",
        "coldest": "Coldharbour",
        "mean_temperature_c": 11.75,
        "note": "example data",
    }
    assert seen == ["visited Aldermoor", "visited Brightwater", "visited Coldharbour", "visited Dunmere"]
    assert unknown.is_error
    assert "Atlantis" in str(unknown.content)


async def test_both_example_servers_work_behind_goat_as_upstreams_json_names_them(
    launch: Launch, notes_url: str
) -> None:
    document = json.loads((EXAMPLES / "upstreams.json").read_text())
    weather, notes = document["mcpServers"]["weather"], document["mcpServers"]["notes"]
    assert weather == {"command": "python", "args": ["examples/weather_stdio.py"]}
    weather.update(command=sys.executable, args=WEATHER.args)
    notes["url"] = notes_url
    file = launch.folder / "upstreams.json"
    file.write_text(json.dumps(document))

    async with connected(Launch(launch.folder, launch.workspace, ("--upstreams", str(file))), "auto") as client:
        tools = await listed_with(client, "mcp__weather__list_towns", "mcp__notes__search_notes")
        names = [tool.name for tool in tools if tool.name.startswith("mcp__")]
        weather_now = await client.call_tool("mcp__weather__current_weather", {"town": "Dunmere"})
        found = await client.call_tool("mcp__notes__search_notes", {"words": "lemon"})

    assert names == [
        "mcp__weather__list_towns",
        "mcp__weather__current_weather",
        "mcp__weather__survey_towns",
        "mcp__notes__search_notes",
        "mcp__notes__read_note",
        "mcp__notes__add_note",
    ]
    assert weather_now.structured_content == {
        "town": "Dunmere",
        "temperature_c": 16.5,
        "sky": "fog",
        "wind_kmh": 3,
        "note": "example data",
    }
    assert [note.id for note in Notes.model_validate(found.structured_content).notes] == [1, 3]
