"""Texts of upstreams with half a surrogate pair reach clients, whose JSON readers would refuse the whole message."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import PromptReference

from tests.e2e.conftest import UNASKED, ours, upstream_file
from tests.e2e.goat import HttpGoat, Launch, connected, http_goat

pytestmark = [
    pytest.mark.matrix,
    pytest.mark.e2e,
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]

BOUND_S = 60.0
SHOWN = r"cut \ud83d emoji"


@pytest.fixture(params=["stdio", "http"])
def target(request: pytest.FixtureRequest, launch: Launch) -> Iterator[Launch | HttpGoat]:
    file = upstream_file(launch.folder / "upstreams.json", h=ours("halves"))
    behind = replace(launch, options=(*UNASKED, "--upstreams", str(file)))
    if request.param == "stdio":
        yield behind
    else:
        with http_goat(behind) as goat:
            yield goat


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_half_a_surrogate_pair_is_shown_as_its_escape_wherever_an_upstream_says_it(
    target: Launch | HttpGoat, era: str
) -> None:
    said: list[Any] = []

    async def logs(notice: Any) -> None:
        said.append(notice.data)

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        if not str(message).startswith("mcp__h__say "):  # its start and its end
            said.append(message)

    with anyio.fail_after(BOUND_S):
        async with connected(target, era, logging_callback=logs) as client:
            tool: Any = await client.call_tool("mcp__h__say", {}, progress_callback=hear)
            read: Any = (await client.read_resource("half://one")).contents[0]
            with pytest.raises(MCPError) as broken:
                await client.read_resource("half://broken")
            with pytest.raises(MCPError) as broken_tool:
                await client.call_tool("mcp__h__say", {"uri": "half://broken"})
            resources = {str(one.uri): one for one in (await client.list_resources()).resources}
            templates = (await client.list_resource_templates()).resource_templates
            (prompt,) = (await client.list_prompts()).prompts
            got: Any = await client.get_prompt(prompt.name)
            completed = await client.complete(PromptReference(name=prompt.name), {"name": "x", "value": ""})
            still: Any = await client.call_tool("Glob", {"pattern": "*.md"})

    assert tool.content[0].text == SHOWN
    assert SHOWN in said and set(said) <= {SHOWN}
    assert (read.text, read.meta) == (SHOWN, {SHOWN: 1})
    assert broken.value.error.message == broken_tool.value.error.message == SHOWN
    assert resources["half://one"].description == SHOWN
    assert SHOWN in [template.title for template in templates]
    assert prompt.description == SHOWN
    assert (got.description, got.messages[0].content.text) == (SHOWN, SHOWN)
    assert completed.completion.values == [SHOWN]
    assert not still.is_error
