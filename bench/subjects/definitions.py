"""What the definitions of the built-in tools cost a model, counted as characters / 4 of compact `tools/list` JSON: all
21 of ours, teams included, and those of Claude Code.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from bench.peers import CLAUDE, claude, claude_env, is_here
from bench.report import Bar, Row
from bench.wire import WireClient
from bench.workbench import Workbench

TOKENS_BAR = 4_500
CHARS_PER_TOKEN = 4
TEAMS = {"CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS": "1"}


def measure(bench: Workbench) -> list[Row]:
    tools = _listed(bench, bench.goat(), {**bench.env, **TEAMS})
    total = _tokens(tools)
    rows = [Row(f"all {len(tools)} definitions", total, "tokens", bar=Bar(total, TOKENS_BAR, "tokens"))]
    if is_here(CLAUDE):
        theirs = _listed(bench, claude(), claude_env(bench))
        rows.append(Row(f"all {len(theirs)} definitions of {CLAUDE}", _tokens(theirs), "tokens"))
        ours = {tool["name"]: tool for tool in tools}
        both = [tool["name"] for tool in theirs if tool["name"] in ours]
        rows.append(Row(f"ours of the {len(both)} that both have", _tokens([ours[name] for name in both]), "tokens"))
        in_both = [tool for tool in theirs if tool["name"] in ours]
        rows.append(Row(f"{CLAUDE}'s of the {len(both)} that both have", _tokens(in_both), "tokens"))
    return rows + [Row(f"definition of {tool['name']}", _tokens(tool), "tokens") for tool in tools]


def _listed(bench: Workbench, command: Sequence[str], env: Mapping[str, str]) -> list[dict[str, object]]:
    with WireClient(command, env, stderr=bench.root / "definitions.log") as client:
        client.open()
        return client.list_tools()


def _tokens(definition: object) -> float:
    return len(json.dumps(definition, separators=(",", ":"), ensure_ascii=False)) / CHARS_PER_TOKEN
