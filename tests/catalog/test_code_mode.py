"""`catalog.mode: code`: what is listed, what search finds, and the functions of scripts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from goat_mcp.catalog.script_functions import function_names
from goat_mcp.gateway.build import tools
from goat_mcp.settings.settings import BrokenSettings
from tests.tool_doubles import FakeTool, fake, spec
from tests.tools.script_gateway import CALLER, Scripts, scripts

pytestmark = pytest.mark.anyio
CODE = {"mode": "code"}


def upstream(name: str) -> FakeTool:
    return FakeTool(replace(spec(name), toolset="upstream"))


def listed(s: Scripts) -> list[str]:
    return [entry["name"] for entry in s.gateway.catalog.listing()]


async def test_the_list_is_the_script_tool_and_those_that_find_and_describe(tmp_path: Path) -> None:
    async with scripts(tmp_path, upstream("mcp__it__echo"), catalog=CODE) as s:
        assert sorted(listed(s)) == ["describe_tool", "run_script", "search_tools"]
        assert [tool.spec.name for tool in s.gateway.catalog.listed()] == listed(s)


async def test_tools_with_a_page_and_those_that_the_user_names_are_listed_too(tmp_path: Path) -> None:
    shows = FakeTool(replace(spec("mcp__it__shows"), toolset="upstream", meta={"ui": {"resourceUri": "ui://it/page"}}))
    catalog = {**CODE, "always_listed": ["Read", "mcp__my"]}
    async with scripts(tmp_path, upstream("mcp__it__echo"), upstream("mcp__my__own"), shows, catalog=catalog) as s:
        names = set(listed(s))

    assert names == {"describe_tool", "run_script", "search_tools", "mcp__it__shows", "mcp__my__own", "Read"}


async def test_a_name_that_nobody_knows_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(BrokenSettings, match=r"catalog\.always_listed: 'Raed' names no tool"):
        async with scripts(tmp_path, catalog={**CODE, "always_listed": ["Raed"]}):
            pass


async def test_search_finds_what_scripts_can_call(tmp_path: Path) -> None:
    async with scripts(tmp_path, upstream("mcp__it__echo"), catalog=CODE) as s:
        found = await s.gateway.call("search_tools", {"query": "echo"}, CALLER)
        text = await s.text("await mcp__it__echo()")

    assert "mcp__it__echo" in found.text
    assert text == "done"


async def test_describe_tool_says_the_name_of_a_function_that_is_another(tmp_path: Path) -> None:
    async with scripts(tmp_path, upstream("mcp__it__get-one"), upstream("mcp__it__two"), catalog=CODE) as s:
        one = await s.gateway.call("describe_tool", {"name": "mcp__it__get-one"}, CALLER)
        two = await s.gateway.call("describe_tool", {"name": "mcp__it__two"}, CALLER)
        assert await s.text("await mcp__it__get_one()") == "done"

    assert json.loads(one.text)["functionInScripts"] == "mcp__it__get_one"
    assert "functionInScripts" not in json.loads(two.text)


def test_a_name_never_takes_that_of_another_tool() -> None:
    names = ["a-b", "a.b", "a_b", "class", "1st", "ünder"]
    functions = {name: tool.name for name, tool in function_names(fake(name).spec for name in names).items()}

    assert functions == {
        "a_b": "a_b",
        "a_b_2": "a-b",
        "a_b_3": "a.b",
        "class_": "class",
        "_1st": "1st",
        "_nder": "ünder",
    }


def test_meta_tools_and_scripts_are_no_functions() -> None:
    assert function_names(spec(name, toolset=name) for name in ("meta", "apps", "code")) == {}


async def test_a_tool_with_the_name_of_a_function_of_pythons_own_has_another_in_scripts(tmp_path: Path) -> None:
    async with scripts(tmp_path, upstream("len"), catalog=CODE) as s:
        described = await s.gateway.call("describe_tool", {"name": "len"}, CALLER)
        assert await s.text("[len('four'), await len_()]") == '[4, "done"]'

    assert json.loads(described.text)["functionInScripts"] == "len_"


async def test_tools_that_are_for_documents_alone_are_no_functions(tmp_path: Path) -> None:
    meta = {"ui": {"resourceUri": "ui://it/page", "visibility": ["app"]}}
    hidden = FakeTool(replace(spec("mcp__it__hidden"), toolset="upstream", meta=meta))
    async with scripts(tmp_path, hidden, catalog=CODE) as s:
        assert "NameError" in await s.failure("await mcp__it__hidden()")

    assert hidden.calls == []


async def test_without_the_extra_the_mode_stops_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def not_installed(name: str) -> None:
        return None

    monkeypatch.setattr(tools, "find_spec", not_installed)

    with pytest.raises(BrokenSettings, match=r"catalog\.mode: code needs the extra `code`"):
        async with scripts(tmp_path, catalog=CODE):
            pass


async def test_where_run_script_is_denied_tools_are_called_one_by_one(tmp_path: Path) -> None:
    catalog = {**CODE, "deny": ["run_script"]}
    async with scripts(tmp_path, upstream("mcp__it__echo"), catalog=catalog) as s:
        assert {"search_tools", "call_tool"} <= set(listed(s))
