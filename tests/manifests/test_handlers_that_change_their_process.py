"""A handler may change what all calls of its process share; the calls after it find it as the file left it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.manifests.declared import call, error_of, gateway_over, python

pytestmark = pytest.mark.anyio

SOURCE = """
import asyncio, os, signal
async def look(ctx, input):
    on = [str(signal.getsignal(number)) for number in (signal.SIGTERM, signal.SIGINT)]
    return {"pid": os.getpid(), "directory": os.getcwd(), "on": on}
async def move(ctx, input):
    os.chdir("/")
async def move_and_fail(ctx, input):
    os.chdir("/")
    raise ValueError
async def ignore(ctx, input):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
async def watch(ctx, input):
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, print)
async def cancel_all(ctx, input):
    for task in asyncio.all_tasks():
        task.cancel()
    await asyncio.sleep(0)
async def stop(ctx, input):
    asyncio.get_running_loop().stop()
    await asyncio.sleep(600)
handlers = {name: value for name, value in globals().items() if asyncio.iscoroutinefunction(value)}
"""


@pytest.mark.parametrize("export", ["move", "move_and_fail", "ignore", "watch"])
async def test_directory_and_signals_are_as_they_were_for_the_next_call(tmp_path: Path, export: str) -> None:
    python(tmp_path / "tools", "probe", SOURCE, "look", export)
    gateway = gateway_over(tmp_path, tmp_path / "tools")

    async with gateway.running():
        before = await call(gateway, "probe__look")
        await call(gateway, f"probe__{export}")
        after = await call(gateway, "probe__look")

    assert after.structured == before.structured


async def test_a_handler_that_cancels_every_task_ends_its_own_call_and_the_next_one_works(tmp_path: Path) -> None:
    python(tmp_path / "tools", "probe", SOURCE, "look", "cancel_all")
    gateway = gateway_over(tmp_path, tmp_path / "tools")

    async with gateway.running():
        before = await call(gateway, "probe__look")
        cancelled = await call(gateway, "probe__cancel_all")
        after = await call(gateway, "probe__look")

    assert error_of(cancelled)["name"] == "Cancelled"
    assert after.structured == before.structured


async def test_a_handler_that_stops_the_loop_ends_its_process_and_the_next_call_works(tmp_path: Path) -> None:
    python(tmp_path / "tools", "probe", SOURCE, "look", "stop")
    gateway = gateway_over(tmp_path, tmp_path / "tools")

    async with gateway.running():
        stopped = await call(gateway, "probe__stop")
        after = await call(gateway, "probe__look")

    assert stopped.is_error
    assert not after.is_error, after.text
