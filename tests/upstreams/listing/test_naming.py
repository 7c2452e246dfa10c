"""Exposed names, collisions and order of several upstreams. No processes: the tools come from stored catalogs."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from tests.upstreams.fleet import fleet, warm

pytestmark = pytest.mark.anyio


def listed(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "inputSchema": {"type": "object"}} for name in names]


FOUR = {
    "one": {"command": "one"},
    "two": {"command": "two", "naming": "flat"},
    "three": {"command": "three", "naming": "thr"},
    "fo.ur": {"command": "four", "naming": "flat"},
}
TOOLS = {
    "one": listed("search", "a.b", "x" * 200),
    "two": listed("two_search", "dotted.name"),
    "three": listed("search"),
    "fo.ur": listed("four search", "Ünïcode"),
}


async def names_of(folder: Path, entries: dict[str, Any], tools: dict[str, Any]) -> tuple[str, ...]:
    warm(folder, entries, tools)
    async with fleet(folder, entries, first_list=False) as running:
        return tuple(running.registry.names())


# NAM-3, NAM-5
async def test_no_upstream_renames_another_by_being_there(tmp_path: Path) -> None:
    whole = await names_of(tmp_path, FOUR, TOOLS)
    alone = {name: await names_of(tmp_path, {name: FOUR[name]}, TOOLS) for name in FOUR}

    assert whole == tuple(name for server in FOUR for name in alone[server])
    assert len(set(whole)) == 8
    for size in range(1, 5):
        for subset in combinations(reversed(FOUR), size):
            names = await names_of(tmp_path, {name: FOUR[name] for name in subset}, TOOLS)
            assert names == tuple(name for server in subset for name in alone[server])


# COL-1
async def test_on_a_clash_the_first_keeps_the_name_and_the_later_is_reported_with_its_remedy(tmp_path: Path) -> None:
    entries = {"a": {"command": "a", "naming": "flat"}, "b": {"command": "b", "naming": "flat"}}
    warm(tmp_path, entries, {"a": listed("search", "search"), "b": listed("search", "other")})

    async with fleet(tmp_path, entries, first_list=False) as running:
        names = running.registry.names()
        owner = running.registry.snapshot.source_of["search"]
        collisions = {name: running.status(name).collisions for name in entries}

    assert names == ("search", "other")
    assert owner == "upstream:a"
    assert [len(reported) for reported in collisions.values()] == [1, 1]
    assert collisions["b"] == (
        "search is kept by upstream:a; give upstream:b another `naming` (qualified, or an alias) so that its search"
        " is visible",
    )


# NAM-2
async def test_a_name_that_looks_like_another_upstreams_is_its_owners(tmp_path: Path) -> None:
    entries = {"a": {"command": "a", "naming": "flat"}, "b": {"command": "b"}}
    warm(tmp_path, entries, {"a": listed("mcp__b__look", "mcp__b__ping"), "b": listed("ping", "real")})

    async with fleet(tmp_path, entries, first_list=False) as running:
        snapshot = running.registry.snapshot
        owners = {name: snapshot.source_of[name] for name in running.registry.names()}
        known_as = {name: tool.spec.rule_name for name, tool in snapshot.tools.items()}

    assert owners == {"mcp__b__look": "upstream:a", "mcp__b__ping": "upstream:a", "mcp__b__real": "upstream:b"}
    assert known_as == {
        "mcp__b__look": "mcp__a__mcp__b__look",
        "mcp__b__ping": "mcp__a__mcp__b__ping",
        "mcp__b__real": "mcp__b__real",
    }


async def test_tools_that_an_entry_does_not_want_are_nowhere_but_in_status(tmp_path: Path) -> None:
    entries = {
        "a": {"command": "a", "disabled_tools": ["drop"]},
        "b": {"command": "b", "enabled_tools": ["read", "drop"], "disabled_tools": ["drop"]},
    }
    warm(tmp_path, entries, dict.fromkeys(entries, listed("read", "write", "drop")))

    async with fleet(tmp_path, entries, first_list=False) as running:
        names = running.registry.names()
        rejected = {name: [(w.name, w.reason_code) for w in running.status(name).rejected] for name in entries}

    assert names == ("mcp__a__read", "mcp__a__write", "mcp__b__read")
    assert rejected == {
        "a": [("drop", "tool_disabled")],
        "b": [("write", "tool_disabled"), ("drop", "tool_disabled")],
    }
