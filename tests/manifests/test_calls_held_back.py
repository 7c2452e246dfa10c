"""Calls that wait - for a person, for others before them - while their manifest becomes another one (R-PERM-4)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from goat_mcp.core.context import ToolContext
from goat_mcp.core.questions import Answer, Form, Reply
from goat_mcp.core.result import ToolResult
from goat_mcp.gateway import Gateway
from goat_mcp.permissions.approval_form import ALLOW_ONCE, DECISION
from tests.manifests.declared import call, error_of, eventually, gateway_over, python

pytestmark = pytest.mark.anyio

BOUND_S = 60.0
OLD = "handlers = {'say': lambda ctx, input: 'old'}"
NEW = "handlers = {'say': lambda ctx, input: 'new'}"
Change = Callable[[Path], object]


def again(**spec: Any) -> Change:
    """Declared again with other handlers beside it."""
    export: dict[str, Any] = {"name": "say", "access": {"category": "one"}, **spec}
    return lambda folder: python(folder, "probe", NEW, export)


def remark(folder: Path) -> None:
    python(folder, "probe", NEW, {"name": "say", "access": {"category": "one"}})
    file = folder / "probe" / "tool.yaml"
    file.write_text(f"# a remark\n{file.read_text()}")


def elsewhere(folder: Path) -> None:
    place = python(folder, "probe", OLD, {"name": "say", "access": {"category": "one"}})
    (place / "others.py").write_text(NEW)
    (place / "tool.yaml").write_text((place / "tool.yaml").read_text().replace("./handlers.py", "./others.py"))


def gone(folder: Path) -> None:
    (folder / "probe" / "tool.yaml").unlink()


async def asked_meanwhile(tmp_path: Path, change: Change) -> ToolResult:
    """A call whose person says yes once the change has been read."""
    folder = tmp_path / "tools"
    again()(folder)
    gateway = gateway_over(tmp_path, folder, permissions={"ask": ["probe__say"]})

    async def ask(form: Form) -> Answer:
        await changed(gateway, folder, change)
        return Answer(Reply.ACCEPTED, {DECISION: ALLOW_ONCE})

    with anyio.fail_after(BOUND_S):
        async with gateway.running():
            return await gateway.call("probe__say", {}, ToolContext(call_id="c", ask=ask))


async def changed(gateway: Gateway, folder: Path, change: Change) -> None:
    before = gateway.registry.get("probe__say")
    change(folder)
    await eventually(lambda: gateway.registry.get("probe__say") is not before)


WAITS = """
import asyncio, os
async def wait(ctx, input):
    while not os.path.exists(input["go"]):
        await asyncio.sleep(0.02)
handlers = {"wait": wait}
"""


def in_turn(gateway: Gateway) -> int:
    """How many calls run, or wait for those that do."""
    return len(gateway.pipeline.scheduler._running)  # pyright: ignore[reportPrivateUsage]  # it has no event


async def scheduled_meanwhile(tmp_path: Path, change: Change) -> ToolResult:
    """A call that waits behind one of its category until the change has been read."""
    folder, go = tmp_path / "tools", tmp_path / "go"
    again()(folder)
    python(folder, "before", WAITS, {"name": "wait", "access": {"category": "one"}})
    gateway = gateway_over(tmp_path, folder)
    results: list[ToolResult] = []

    async def held_back() -> None:
        results.append(await call(gateway, "probe__say"))

    with anyio.fail_after(BOUND_S):
        async with gateway.running(), anyio.create_task_group() as group:
            group.start_soon(lambda: call(gateway, "before__wait", go=str(go)))
            await eventually(lambda: in_turn(gateway) == 1)
            group.start_soon(held_back)
            await eventually(lambda: in_turn(gateway) == 2)
            await changed(gateway, folder, change)
            go.touch()
    return results[0]


both = pytest.mark.parametrize("held_back", [asked_meanwhile, scheduled_meanwhile])


@both
@pytest.mark.parametrize(
    "change",
    [
        again(description="Does something else."),
        again(parameters={"type": "object", "properties": {"path": {"type": "string"}}}),
        again(sideEffect="mutating"),
        elsewhere,
    ],
    ids=["description", "parameters", "side effect", "entry"],
)
async def test_a_call_of_a_tool_that_became_another_one_is_refused(
    tmp_path: Path, held_back: Any, change: Change
) -> None:
    error = error_of(await held_back(tmp_path, change))

    assert error["code"] == "E_PERMISSION"
    assert error["message"].startswith("probe__say was changed")
    assert "call it again" in error["suggestion"].lower()


@both
@pytest.mark.parametrize("change", [remark, again(timeoutMs=20_000)], ids=["a remark", "its time"])
async def test_a_call_of_one_that_is_what_it_was_runs_what_is_there_now(
    tmp_path: Path, held_back: Any, change: Change
) -> None:
    result = await held_back(tmp_path, change)

    assert (result.is_error, result.text) == (False, "new")


@both
async def test_a_call_of_one_that_was_taken_away_is_refused(tmp_path: Path, held_back: Any) -> None:
    error = error_of(await held_back(tmp_path, gone))

    assert error["code"] in ("E_TOOL_NOT_IN_CATALOG", "E_TOOL_NOT_FOUND")
