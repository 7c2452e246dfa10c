"""Attacks on what rules and modes let through, as a client would send them: through the whole pipeline."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.core.side_effect import SideEffect
from goat_mcp.embed import EmbeddedTools, open_tools
from tests.upstreams.fleet import server

pytestmark = pytest.mark.anyio

EFFECTS = (SideEffect.MUTATING, SideEffect.NETWORK, SideEffect.BLOCKING, SideEffect.SPAWNS)
ONLY_FETCH = ("WebFetch", "WebSearch")


@asynccontextmanager
async def tools_in(folder: Path, **settings: Any) -> AsyncGenerator[EmbeddedTools]:
    (folder / "ws").mkdir()
    async with open_tools({"workspace": [str(folder / "ws")], **settings}, state_directory=folder / "state") as tools:
        yield tools


@pytest.mark.parametrize(
    "host",
    [
        "notallowed.invalid",
        "allowed.invalid.evil.test",
        "allowed.invalid-evil.test",
        "allowed.inval\u0456d",
        "llowed.invalid",
    ],
)
async def test_wf_44_a_host_that_only_looks_like_an_allowed_one_is_not_fetched_unasked(
    tmp_path: Path, host: str
) -> None:
    """R-NET-8"""
    rules = {"allow": ["WebFetch(domain:allowed.invalid)"]}
    async with tools_in(tmp_path, mode="dontAsk", permissions=rules) as tools:
        lookalike = await tools.call("WebFetch", {"url": f"https://{host}/", "prompt": "x"})
        allowed = [
            await tools.call("WebFetch", {"url": f"https://{name}/", "prompt": "x"})
            for name in ("allowed.invalid", "sub.allowed.invalid", "ALLOWED.invalid.")
        ]

    assert lookalike.error_code == "E_PERMISSION"
    assert "E_PERMISSION" not in [result.error_code for result in allowed]


async def test_pr_26_the_model_does_not_end_plan_mode_by_itself(tmp_path: Path) -> None:
    """With nobody to approve it. That an agent gets no wider mode is shown in tests/agents/test_rights.py."""
    async with tools_in(tmp_path, mode="plan") as tools:
        left = await tools.call("ExitPlanMode", {"plan": "I write a file."})
        written = await tools.call("Write", {"file_path": "@f", "content": "x"})
        set_by_config = await tools.call("Config", {"setting": "mode", "value": "default"})
        again = await tools.call("Write", {"file_path": "@f", "content": "x"})

    assert left.facts is not None and left.facts["approved"] is False
    assert set_by_config.is_error
    assert [result.error_code for result in (written, again)] == ["E_PLAN_MODE", "E_PLAN_MODE"]
    assert not (tmp_path / "ws" / "f").exists()


async def test_pm_05_in_plan_mode_nothing_that_may_change_something_runs(tmp_path: Path) -> None:
    """Every tool, an upstream's as well, with the input of its own first example; what only looks goes on working.

    Fetching a page changes nothing: plan mode asks about it, as the default mode does (design D8).
    """
    upstreams = tmp_path / "upstreams.json"
    upstreams.write_text(json.dumps({"mcpServers": {"evil": server("evil.py")}}))
    codes: dict[str, str | None] = {}
    async with tools_in(tmp_path, mode="plan", upstreams=[str(upstreams)]) as tools:
        await tools.definitions()
        for tool in tools.gateway.catalog.tools():
            spec = tool.spec
            if spec.name.startswith("mcp__") or (spec.side_effect in EFFECTS and spec.name not in ONLY_FETCH):
                required = dict.fromkeys(spec.input_schema.get("required", ()), "a")
                given = dict(spec.examples[0].input) if spec.examples else required
                codes[spec.name] = (await tools.call(spec.name, given)).error_code
        looked = await tools.call("Glob", {"pattern": "*"})
        made = list((tmp_path / "ws").iterdir())

    assert {"Bash", "Write", "Edit", "NotebookEdit", "TaskStop", "Agent", "mcp__evil__delete_all"} <= set(codes)
    assert set(codes.values()) == {"E_PLAN_MODE"}, codes
    assert not looked.is_error
    assert made == []
