"""Calls that wait - for a person, for others before them - while their manifest becomes another one (R-PERM-4)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from goat_mcp.calls.approvals.record import Verdict
from goat_mcp.calls.approvals.store import ApprovalStore
from goat_mcp.calls.permissions.approval import ALLOW_ONCE, DECISION
from goat_mcp.core.context import ToolContext
from goat_mcp.core.elicitation import Answer, Form, Reply
from goat_mcp.core.result import ToolResult
from goat_mcp.gateway.gateway import Gateway
from tests.manifests.declared import call, error_of, eventually, gateway_over, python, tool, write

pytestmark = pytest.mark.anyio

BOUND_S = 60.0
ANOTHER = "was changed while this call waited: its handler is another file now, or the file holds something else"
OLD = "handlers = {'say': lambda ctx, input: 'old'}"
NEW = "handlers = {'say': lambda ctx, input: 'new'}"
Change = Callable[[Path], object]


def again(**spec: Any) -> Change:
    """Declared again over the same handlers."""
    export: dict[str, Any] = {"name": "say", "access": {"category": "one"}, **spec}
    return lambda folder: write(folder, tool("probe", "./handlers.py", export))


def remark(folder: Path) -> None:
    file = folder / "probe" / "tool.yaml"
    file.write_text(f"# a remark\n{file.read_text()}")


def elsewhere(folder: Path) -> None:
    place = folder / "probe"
    (place / "others.py").write_text(NEW)
    (place / "tool.yaml").write_text((place / "tool.yaml").read_text().replace("./handlers.py", "./others.py"))


def gone(folder: Path) -> None:
    (folder / "probe" / "tool.yaml").unlink()


async def asked_meanwhile(tmp_path: Path, change: Change) -> ToolResult:
    """A call whose person says yes once the change has been read."""
    folder = tmp_path / "tools"
    python(folder, "probe", OLD, {"name": "say", "access": {"category": "one"}})
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
    python(folder, "probe", OLD, {"name": "say", "access": {"category": "one"}})
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
async def test_a_call_of_one_that_is_what_it_was_runs(tmp_path: Path, held_back: Any, change: Change) -> None:
    result = await held_back(tmp_path, change)

    assert (result.is_error, result.text) == (False, "old")


@both
async def test_a_call_of_one_that_was_taken_away_is_refused(tmp_path: Path, held_back: Any) -> None:
    error = error_of(await held_back(tmp_path, gone))

    assert error["code"] in ("E_TOOL_NOT_IN_CATALOG", "E_TOOL_NOT_FOUND")


def in_place(file: Path) -> None:
    """Of the same size, and with the time it had."""
    before = file.stat()
    file.write_text(file.read_text().replace("old", "new"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def replaced(file: Path) -> None:
    other = file.with_name("other")
    other.write_text(file.read_text().replace("old", "new"))
    other.chmod(0o755)
    other.replace(file)


@pytest.mark.parametrize("change", [in_place, replaced, Path.unlink])
@pytest.mark.parametrize("name", ["handlers.py", "tool.sh", "say.sh"])
async def test_what_a_person_allowed_is_not_used_for_another_handler(
    tmp_path: Path, name: str, change: Callable[[Path], object]
) -> None:
    folder = tmp_path / "tools"
    script = "#!/bin/sh\necho '\"old\"'\n"
    commands = {"tool.sh": ["./tool.sh"], "say.sh": ["sh", "{export}.sh"]}
    entry = {"command": commands[name]} if name in commands else "./handlers.py"
    place = write(folder, tool("probe", entry, "say"), handlers_py=OLD, tool_sh=script, say_sh=script)
    gateway = gateway_over(tmp_path, folder, permissions={"ask": ["probe__say"]})
    to_come: list[Callable[[Path], object]] = [lambda _: None, change]

    async def ask(form: Form) -> Answer:
        to_come.pop(0)(place / name)
        return Answer(Reply.ACCEPTED, {DECISION: ALLOW_ONCE})

    ctx = ToolContext(call_id="c", ask=ask)
    with anyio.fail_after(BOUND_S):
        async with gateway.running():
            results = [await gateway.call("probe__say", {}, ctx) for _ in range(2)]

    assert results[0].text == "old"
    assert error_of(results[1])["message"] == f"probe__say {ANOTHER}"


async def test_an_approval_from_the_queue_is_not_used_for_another_handler(tmp_path: Path) -> None:
    folder = tmp_path / "tools"
    python(folder, "probe", OLD, {"name": "say", "access": {"category": "one"}})
    gateway = gateway_over(tmp_path, folder, permissions={"ask": ["probe__say"]}, approval={"wait_s": 0})
    queue = ApprovalStore(gateway.state)
    async with gateway.running():
        await call(gateway, "probe__say")
        queue.decide(queue.waiting()[0].id, Verdict(approved=True), "terminal")
        await changed(gateway, folder, handlers_too)
        after_the_change = await call(gateway, "probe__say")

    assert after_the_change.error_code == "E_APPROVAL_PENDING"


async def test_a_call_that_waits_for_its_turn_does_not_run_another_handler(tmp_path: Path) -> None:
    result = await scheduled_meanwhile(tmp_path, handlers_too)

    assert ANOTHER in result.text


def handlers_too(folder: Path) -> None:
    remark(folder)
    in_place(folder / "probe" / "handlers.py")
