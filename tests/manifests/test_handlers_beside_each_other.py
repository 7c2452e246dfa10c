"""Calls that share the process of their file while one of them blocks it, or ends it: what the others are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from goat_mcp.core.context import ToolContext
from goat_mcp.gateway.gateway import Gateway
from tests.manifests.declared import call, error_of, eventually, gateway_over, python

pytestmark = pytest.mark.anyio

HANDLERS = """
import asyncio, os, pathlib, time
async def block(ctx, input):
    while not os.path.exists(input["go"]):
        await asyncio.sleep(0.01)
    pathlib.Path(input["go"] + ".held").touch()
    time.sleep(600)
async def crash(ctx, input):
    while not os.path.exists(input["go"]):
        await asyncio.sleep(0.01)
    os._exit(3)
async def long(ctx, input):
    pathlib.Path(input["begun"]).touch()
    await asyncio.sleep(600)
async def quick(ctx, input):
    return 1
handlers = {"block": block, "crash": crash, "long": long, "look": long, "quick": quick, "first": quick}
"""
EXPORTS: tuple[dict[str, Any], ...] = (
    {"name": "block", "timeoutMs": 4_000},
    {"name": "crash"},
    {"name": "long", "sideEffect": "mutating"},
    {"name": "look"},
    {"name": "quick", "timeoutMs": 1_000, "sideEffect": "mutating"},
    {"name": "first"},
)


async def together(tmp_path: Path, guilty: str, *innocent: str, late: str = "") -> dict[str, dict[str, Any]]:
    """The errors of calls that run beside a guilty one, and of one that comes when it holds the process."""
    python(tmp_path / "tools", "probe", HANDLERS, *EXPORTS)
    gateway = gateway_over(tmp_path, tmp_path / "tools", mode="bypassPermissions")
    go, errors = tmp_path / "go", dict[str, dict[str, Any]]()

    async def one(gateway: Gateway, name: str, **arguments: Any) -> None:
        errors[name] = error_of(await call(gateway, f"probe__{name}", **arguments))

    with anyio.fail_after(60):
        async with gateway.running(), anyio.create_task_group() as group:
            await call(gateway, "probe__first")  # the time of a call covers the loading
            for name in innocent:
                group.start_soon(lambda name=name: one(gateway, name, begun=str(tmp_path / name)))
                await eventually((tmp_path / name).exists)
            group.start_soon(lambda: one(gateway, guilty, go=str(go)))
            go.touch()
            if late:
                await eventually((tmp_path / "go.held").exists)
                group.start_soon(lambda: one(gateway, late))
    return errors


async def test_a_call_that_never_began_since_another_blocks_is_told_so(tmp_path: Path) -> None:
    error = (await together(tmp_path, "block", late="quick"))["quick"]

    assert error["code"] == "E_TIMEOUT"
    assert error["message"].startswith("probe__quick did not begin within 1 s: probe__block held the process of both")
    assert error["suggestion"].startswith("Nothing of this call was run: call it again")


async def test_calls_that_had_begun_are_told_who_held_the_process_and_that_they_may_have_done_their_work(
    tmp_path: Path,
) -> None:
    errors = await together(tmp_path, "block", "long", "look")

    assert errors["block"]["code"] == "E_TIMEOUT"
    assert "probe__block" in errors["long"]["message"] and "held it" in errors["long"]["message"]
    assert errors["long"]["suggestion"].startswith("This call may have done its work, or a part of it: look before")
    assert errors["look"]["suggestion"].startswith("Call it again.")


async def test_calls_in_a_process_that_ends_are_told_what_was_at_work_and_whether_they_may_have_run(
    tmp_path: Path,
) -> None:
    errors = await together(tmp_path, "crash", "long", "look")

    assert errors["long"]["message"].endswith("at work in it: probe__crash, probe__look")
    assert "exit code 3" in errors["long"]["message"]
    assert errors["long"]["suggestion"].startswith("This call may have done its work, or a part of it: look before")
    assert errors["look"]["suggestion"].startswith("Call it again")


LAST_WORDS = """
import os, sys
def say(ctx, input):
    print(input["what"], file=sys.stderr)
def die(ctx, input):
    print(*input["what"], file=sys.stderr)
    os._exit(1)
handlers = {"say": say, "die": die}
"""


async def died(tmp_path: Path, *, before: str, by: str, what: list[str]) -> str:
    """What a call of `by` is told that ends the process, where a call of `before` has printed something secret."""
    python(tmp_path / "tools", "probe", LAST_WORDS, "say", "die")
    gateway = gateway_over(tmp_path, tmp_path / "tools", mode="bypassPermissions")
    async with gateway.running():
        said = await gateway.call("probe__say", {"what": "a secret"}, ToolContext(call_id="1", principal=before))
        end = await gateway.call("probe__die", {"what": what}, ToolContext(call_id="2", principal=by))
    assert not said.is_error
    return str(error_of(end)["message"])


async def test_what_a_process_printed_for_one_is_not_told_to_another(tmp_path: Path) -> None:
    # Not even what came since: nothing says that it is of this call.
    told = await died(tmp_path, before="alice", by="bob", what=["of bob"])

    assert told == (
        "the process of probe ended during the call (exit code 1): what it printed is not told, since it runs calls of "
        "others, too"
    )


@pytest.mark.parametrize(("what", "reason"), [(["a reason"], "a reason"), ([], "it said nothing")])
async def test_the_reason_of_an_end_is_of_the_call_that_met_it(tmp_path: Path, what: list[str], reason: str) -> None:
    told = await died(tmp_path, before="alice", by="alice", what=what)

    assert told == f"the process of probe ended during the call (exit code 1): {reason}"
