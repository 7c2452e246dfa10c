"""What hides in results is shown where the entry says `sanitize: true`, and only there (R-UP-7)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from goat_mcp.core.errors import ErrorCode, ToolError, UpstreamError
from goat_mcp.core.result import ToolResult, text_block
from goat_mcp.upstreams.calls.visible_results import VisibleResults
from tests.upstreams.fleet import Fleet, fleet, server

pytestmark = pytest.mark.anyio


async def message(running: Fleet, tool: str) -> str:
    with pytest.raises(UpstreamError) as refused:
        await running.call(tool)
    return refused.value.message


@pytest.mark.e2e
async def test_results_pass_as_they_come_unless_the_entry_says_otherwise(tmp_path: Path) -> None:
    entries = {"raw": server("raw.py", "hidden"), "shown": server("raw.py", "hidden", sanitize=True)}
    async with fleet(tmp_path, entries) as running:
        raw, shown = await running.call("mcp__raw__hidden"), await running.call("mcp__shown__hidden")
        messages = [await message(running, f"mcp__{name}__refused") for name in entries]
        counts = [running.status(name).escaped_results for name in entries]

    assert (raw.text, raw.structured) == ("\x1b[2Jfine\r\nok\u202e", {"say": ["\U000e0041"]})
    assert (shown.text, shown.structured) == ("\\x1b[2Jfine\r\nok\\u202e", {"say": ["\\U000e0041"]})
    assert messages == ["no\u200b", "no\\u200b"]
    assert counts == [0, 2]


def test_every_text_is_made_visible_and_what_is_no_text_stays() -> None:
    link = {"type": "resource_link", "uri": "x:\u200b", "name": "n\u200b", "description": "d\u200b"}
    held = {"type": "resource", "resource": {"uri": "x:\u200b", "mimeType": "a\u200b", "text": "t\u200b"}}
    image = {"type": "image", "data": "aGk=\u200b", "mimeType": "image/png"}
    result = ToolResult(content=(text_block("a"), link, held, image), structured={"k\u200b": 1, "k\\u200b": "\u200b"})

    made = VisibleResults("s").of_call(result)

    assert made.content == (
        text_block("a"),
        {**link, "name": "n\\u200b", "description": "d\\u200b"},
        {"type": "resource", "resource": {**held["resource"], "text": "t\\u200b"}},  # type: ignore[dict-item]  # blocks are JSON
        image,
    )
    # Of two keys that are one when visible none is lost.
    assert made.structured == {"k\\u200b (2)": 1, "k\\u200b": "\\u200b"}


def test_what_has_nothing_to_hide_is_the_very_same_object_and_counts_nothing() -> None:
    visible = VisibleResults("s")
    result = ToolResult(
        content=(text_block("line\r\nemoji \U0001f468\u200d\U0001f469 \ttab\n"),), structured={"a": [None, 1]}
    )
    prompt = {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}]}

    assert visible.of_call(result) is result
    assert visible.of_request(prompt) is prompt
    assert visible.escaped == 0


def test_resources_and_prompts_are_looked_through_too() -> None:
    contents = {"contents": [{"uri": "a:", "text": "\u202e"}, {"uri": "b:", "blob": "AA=="}]}

    made = VisibleResults("s").of_request(contents)

    assert made == {"contents": [{"uri": "a:", "text": "\\u202e"}, {"uri": "b:", "blob": "AA=="}]}


def test_a_result_that_is_nested_too_deeply_is_an_error_and_not_half_looked_through() -> None:
    deep: Any = "x"
    for _ in range(5_000):
        deep = [deep]

    with pytest.raises(ToolError) as failure:
        VisibleResults("s").of_call(ToolResult(structured=deep))

    assert failure.value.code is ErrorCode.UPSTREAM
