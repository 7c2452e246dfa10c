"""`goat-mcp inspect`: what clients see, what was rewritten, and what that means for a pipeline (SCH-1, OBS-2)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_call import run
from tests.upstreams.fleet import server, warm

pytestmark = pytest.mark.e2e


def upstreams(folder: Path, *listed: dict[str, Any]) -> str:
    entries = {"s": server("good.py")}
    warm(folder, entries, {"s": list(listed)})
    return str(folder / "upstreams.json")


CHOICE = {"name": "look", "inputSchema": {"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}}
FINE = {"name": "fine", "inputSchema": {"type": "object"}}


def test_strict_lists_every_rewrite_and_fails_with_6(tmp_path: Path) -> None:
    file = upstreams(tmp_path, CHOICE, FINE)

    strict = run("inspect", "s", "--strict", "--json", "--upstreams", file, cwd=tmp_path)
    lenient = run("inspect", "s", "--upstreams", file, cwd=tmp_path)
    verbatim = run("inspect", "s", "--strict", "--dialect", "mcp", "--upstreams", file, cwd=tmp_path)

    assert (strict.returncode, lenient.returncode, verbatim.returncode) == (6, 0, 0)
    document = json.loads(strict.stdout)
    rewrite = {"path": "/inputSchema", "what": "the root became one plain object, without anyOf"}
    assert {tool["name"]: tool["rewrites"] for tool in document["tools"]} == {
        "mcp__s__look": [rewrite],
        "mcp__s__fine": [],
    }
    assert document["dialect"] == "plain"
    assert "  /inputSchema: the root became one plain object, without anyOf" in lenient.stdout.splitlines()


def test_one_tool_is_shown_as_listed_and_as_it_came(tmp_path: Path) -> None:
    shown = run("inspect", "mcp__s__look", "--json", "--upstreams", upstreams(tmp_path, CHOICE), cwd=tmp_path)

    (tool,) = json.loads(shown.stdout)["tools"]
    assert tool["listed"]["inputSchema"] == {"type": "object"}
    assert tool["original"]["inputSchema"] == CHOICE["inputSchema"]


def test_what_does_not_exist_is_wrong_usage(tmp_path: Path) -> None:
    unknown = run("inspect", "nobody", cwd=tmp_path)
    no_dialect = run("inspect", "--dialect", "klingon", cwd=tmp_path)

    assert (unknown.returncode, no_dialect.returncode) == (1, 1)
    assert "nobody" in unknown.stderr and "klingon" in no_dialect.stderr
