"""Each call with a progress token gives a start and an end notice: both eras and transports, the fast path too."""

from __future__ import annotations

import re
import sys
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.e2e.conftest import UNASKED, upstream_file
from tests.e2e.goat import REPOSITORY, HttpGoat, Launch, connected, http_goat, listed_with

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]
BOUND_S = 60.0
SURVEY = "mcp__weather__survey_towns"
VISITED = ["visited Aldermoor", "visited Brightwater", "visited Coldharbour", "visited Dunmere"]


@pytest.fixture(params=["stdio", "http"])
def target(launch: Launch, request: pytest.FixtureRequest) -> Generator[Launch | HttpGoat]:
    weather = {"command": sys.executable, "args": [str(REPOSITORY / "examples" / "weather_stdio.py")]}
    file = upstream_file(launch.folder / "upstreams.json", weather=weather)
    behind = replace(launch, options=(*UNASKED, "--upstreams", str(file)))
    if request.param == "stdio":
        yield behind
    else:
        with http_goat(behind) as goat:
            yield goat


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_every_call_says_when_it_starts_and_ends(target: Launch | HttpGoat, launch: Launch, era: str) -> None:
    (Path(launch.workspace) / "a.txt").write_text("text\n")

    async def notices(client: Any, tool: str, arguments: dict[str, Any]) -> list[str]:
        seen: list[tuple[float, str]] = []

        async def note(progress: float, total: float | None, message: str | None) -> None:
            seen.append((progress, message or ""))

        await client.call_tool(tool, arguments, progress_callback=note)
        values = [value for value, _ in seen]
        assert values == sorted(set(values))
        return [re.sub(r"\d+\.\d{3} s", "N s", message) for _, message in seen]

    with anyio.fail_after(BOUND_S):
        async with connected(target, era) as client:
            await listed_with(client, SURVEY)
            # The second call of a kind goes the fast path.
            read = [await notices(client, "Read", {"file_path": "@a.txt"}) for _ in range(2)]
            missing = [await notices(client, "Read", {"file_path": "@none"}) for _ in range(2)]
            survey = [await notices(client, SURVEY, {}) for _ in range(2)]
            failed = await notices(client, "mcp__weather__current_weather", {"town": "Atlantis"})

    assert read == [["Read started", "Read finished in N s"]] * 2
    assert missing == [["Read started", "Read failed after N s"]] * 2
    assert survey == [[f"{SURVEY} started", *VISITED, f"{SURVEY} finished in N s"]] * 2
    assert failed == ["mcp__weather__current_weather started", "mcp__weather__current_weather failed after N s"]
