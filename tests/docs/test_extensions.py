"""The extensions on the page are the files in examples/extensions, and do what they say from an installed package."""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.embed import open_tools
from tests.calls.extensions.installed_package import install
from tests.docs.test_documents import ROOT, blocks
from tests.tool_doubles import fake

pytestmark = pytest.mark.anyio

PAGE = ROOT / "docs" / "extensions.md"
EXAMPLES = {path.stem: path.read_text() for path in sorted((ROOT / "examples" / "extensions").glob("*.py"))}
POINTS = {
    "telling_titles": "my_extensions.validation:telling_titles",
    "skip_generated": "my_extensions.transformation:skip_generated",
    "call_times": "my_extensions.call_logging:call_times",
    "office_hours": "my_extensions.access_control:office_hours",
    "where_things_are": "my_extensions.error_decoration:where_things_are",
    "focus": "my_extensions.own_tools:Focus",
}


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = {f"my_extensions.{name}": source for name, source in EXAMPLES.items()}
    install(tmp_path, monkeypatch, POINTS, {"my_extensions.__init__": "", **modules})


def opened(tmp_path: Path, *names: str) -> Any:
    (tmp_path / "ws" / "generated").mkdir(parents=True)
    for name in ("a.txt", "generated/b.txt"):
        (tmp_path / "ws" / name).write_text("hay\n")
    tree = {"workspace": [str(tmp_path / "ws")], "extensions": list(names), "permissions": {"allow": ["mcp__tracker"]}}
    return open_tools(tree, state_directory=tmp_path / "state")


def test_the_page_shows_the_files_as_they_are() -> None:
    shown = {block.strip() for block in blocks(PAGE, "python")}

    assert shown == {source.strip() for source in EXAMPLES.values()}
    assert len(shown) == 6


def test_the_names_on_the_page_are_entry_points() -> None:
    (toml,) = blocks(PAGE, "toml")
    (settings,) = blocks(PAGE, "yaml")

    assert dict(re.findall(r'^(\w+) = "(.+)"$', toml, re.MULTILINE)).items() <= POINTS.items()
    assert set(yaml.safe_load(settings)["extensions"]) <= set(POINTS)


async def test_validation_sends_back_a_title_that_says_nothing(tmp_path: Path) -> None:
    tool = fake("mcp__tracker__create_issue", SideEffect.MUTATING)

    async with opened(tmp_path, "telling_titles") as tools:
        tools.gateway.registry.replace_source("upstream:tracker", [tool])
        refused = await tools.call("mcp__tracker__create_issue", {"title": "it broke"})
        filed = await tools.call("mcp__tracker__create_issue", {"title": "Save loses the last line"})

    assert refused.text == "title: wants at least 3 words\nSay what is wrong, and where.\n[E_INPUT]"
    assert (filed.text, tool.calls) == ("done", [{"title": "Save loses the last line"}])


async def test_transformation_leaves_the_generated_folder_out(tmp_path: Path) -> None:
    async with opened(tmp_path, "skip_generated") as tools:
        usual = await tools.call("Grep", {"pattern": "hay"})
        asked = await tools.call("Grep", {"pattern": "hay", "glob": "generated/**"})

    assert ("a.txt" in usual.text, "b.txt" in usual.text) == (True, False)
    assert "b.txt" in asked.text


async def test_logging_writes_each_call_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "times.jsonl"
    monkeypatch.setenv("CALL_TIMES", str(log))

    async with opened(tmp_path, "call_times") as tools:
        for name in ("a.txt", "none.txt"):
            await tools.call("Read", {"file_path": f"@{name}"})

    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["tool"], line["outcome"]) for line in lines] == [("Read", "ok"), ("Read", "error")]
    assert all(line["ms"] > 0 for line in lines)


@pytest.mark.parametrize(
    ("now", "runs"),
    [(datetime(2026, 11, 20, 10), True), (datetime(2026, 11, 20, 20), False), (datetime(2026, 11, 21, 10), False)],
    ids=["Friday morning", "Friday night", "Saturday"],
)
async def test_access_control_keeps_office_hours(
    now: datetime, runs: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return now

    tool = fake("mcp__tracker__close_issue", SideEffect.MUTATING)

    async with opened(tmp_path, "office_hours") as tools:
        monkeypatch.setattr("my_extensions.access_control.datetime", Clock)
        tools.gateway.registry.replace_source("upstream:tracker", [tool])
        result = await tools.call("mcp__tracker__close_issue", {})
        mine = await tools.call("Read", {"file_path": "@a.txt"})

    assert (result.error_code, len(tool.calls)) == ((None, 1) if runs else ("E_PERMISSION", 0))
    assert mine.text == "1\thay"


async def test_error_decoration_tells_where_things_are(tmp_path: Path) -> None:
    missing = fake("mcp__tracker__show", answer=ToolError(ErrorCode.NOT_FOUND, "no such file"))

    async with opened(tmp_path, "where_things_are") as tools:
        tools.gateway.registry.replace_source("upstream:tracker", [missing])
        result = await tools.call("mcp__tracker__show", {})
        found = await tools.call("Read", {"file_path": "@a.txt"})

    assert result.is_error
    assert result.text.endswith("\nIn this project sources are in src/ and their tests in spec/.")
    assert found.text == "1\thay"


async def test_an_extension_brings_a_tool_and_hides_others_while_it_wants_to(tmp_path: Path) -> None:
    def names(definitions: list[dict[str, Any]]) -> list[str]:
        return [one["function"]["name"] for one in definitions]

    async with opened(tmp_path, "focus") as tools:
        before = names(await tools.definitions())
        focused = await tools.call("focus__set", {"on": "reading"})
        while_reading = names(await tools.definitions())
        hidden = await tools.call("Write", {"file_path": "@new.txt", "content": "x"})
        found = await tools.call("Glob", {"pattern": "*.txt"})
        await tools.call("focus__set", {"on": "writing"})
        after = names(await tools.definitions())
        wrong = await tools.call("focus__set", {"on": "nothing"})

    assert focused.text == '{"on": "reading"}'
    assert "focus__set" in before
    assert set(before) - set(while_reading) == {"Write", "Edit", "NotebookEdit", "Bash"}
    assert hidden.text == "Write is hidden in this step\nUse a tool of the newest list.\n[E_TOOL_NOT_IN_CATALOG]"
    assert "a.txt" in found.text
    assert after == before
    assert wrong.error_code == "E_INPUT"
