"""`goat-mcp list`: what the catalog holds, and what it costs a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.catalog.builtin_contracts import builtin_contracts
from tests.cli.test_call import run
from tests.contract.test_every_tool import MAX_TOKENS

pytestmark = pytest.mark.e2e

TEAMS = {"CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS": "1"}


def cost(entry: dict[str, Any]) -> int:
    """Characters of the compact JSON of a `tools/list` entry, four to a token, rounded up."""
    wire = {key: value for key, value in entry.items() if key != "tokens"}
    return (len(json.dumps(wire, separators=(",", ":"), ensure_ascii=False)) + 3) // 4


def test_tokens_are_shown_for_each_tool_and_for_all_of_them(tmp_path: Path) -> None:
    as_json = run("list", "--tokens", "--json", cwd=tmp_path, variables=TEAMS)
    as_text = run("list", "--tokens", cwd=tmp_path, variables=TEAMS)

    document = json.loads(as_json.stdout)
    costs = {tool["name"]: tool["tokens"] for tool in document["tools"]}
    headers, *lines, last = as_text.stdout.splitlines()
    assert headers.split("\t") == ["tool", "effects", "tokens", "risk", "server", "what it does"]
    assert costs == {tool["name"]: cost(tool) for tool in document["tools"]}
    assert document["tokens"] == sum(costs.values()) <= MAX_TOKENS
    assert {line.split("\t")[0]: int(line.split("\t")[2]) for line in lines} == costs
    assert last == f"{len(costs)} tools, {document['tokens']:,} tokens"
    assert list(costs) == [spec.name for spec in builtin_contracts() if spec.toolset != "code"]


def test_without_the_flag_nothing_is_counted(tmp_path: Path) -> None:
    document = json.loads(run("list", "--json", cwd=tmp_path).stdout)

    assert "tokens" not in document and "tokens" not in document["tools"][0]
    assert document["problems"] == []


def test_a_smaller_catalog_costs_less(tmp_path: Path) -> None:
    few = json.loads(run("list", "--tokens", "--json", "--preset", "read_only", cwd=tmp_path).stdout)
    all_of_them = json.loads(run("list", "--tokens", "--json", cwd=tmp_path).stdout)

    assert 0 < few["tokens"] < all_of_them["tokens"]
