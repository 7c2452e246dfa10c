"""How long the processes of users' Python handlers live: one start for all that wait for it, and an end for each that
is no longer the current one, whatever happens meanwhile."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import pytest

from goat_mcp.manifests import handler_worker
from tests.manifests.declared import call, error_of, eventually, gateway_over, python

pytestmark = pytest.mark.anyio

WAITS = """
import asyncio, os
async def pid(ctx, input):
    with open(input["begun"], "w") as file:
        file.write(str(os.getpid()))
    while input.get("go") and not os.path.exists(input["go"]):
        await asyncio.sleep(0.02)
    return os.getpid()
handlers = {"pid": pid, "quick": pid}
"""
EXPORTS = ({"name": "pid"}, {"name": "quick", "timeoutMs": 700})


def loads_slowly(tmp_path: Path) -> str:
    """It appends its process to `loading`, and is loaded once `load` is there."""
    return f"""
import os, time
with open({str(tmp_path / "loading")!r}, "a") as file:
    print(os.getpid(), file=file, flush=True)
while not os.path.exists({str(tmp_path / "load")!r}):
    time.sleep(0.02)
{WAITS}"""


def pids(file: Path) -> list[int]:
    return [int(line) for line in file.read_text().splitlines() if line] if file.exists() else []


def runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False


async def test_the_process_before_a_change_ends_with_its_last_call_also_while_the_next_one_is_loaded(
    tmp_path: Path,
) -> None:
    place = python(tmp_path / "tools", "probe", WAITS, *EXPORTS)
    gateway = gateway_over(tmp_path, tmp_path / "tools")
    old, new, go = tmp_path / "old", tmp_path / "new", tmp_path / "go"
    done: list[str] = []

    async def old_call() -> None:
        done.append((await call(gateway, "probe__pid", begun=str(old), go=str(go))).text)

    async with gateway.running(), anyio.create_task_group() as group:
        group.start_soon(old_call)
        await eventually(lambda: bool(pids(old)))
        (place / "handlers.py").write_text(loads_slowly(tmp_path))
        group.start_soon(lambda: call(gateway, "probe__pid", begun=str(new)))
        await eventually(lambda: bool(pids(tmp_path / "loading")))
        go.touch()
        await eventually(lambda: bool(done))
        (tmp_path / "load").touch()
        await eventually(lambda: bool(pids(new)))

        await eventually(lambda: not runs(pids(old)[0]))


async def test_the_process_before_a_change_ends_with_its_last_call_also_where_the_next_one_cannot_be_loaded(
    tmp_path: Path,
) -> None:
    place = python(tmp_path / "tools", "probe", WAITS, *EXPORTS)
    gateway = gateway_over(tmp_path, tmp_path / "tools")
    old, go = tmp_path / "old", tmp_path / "go"

    async with gateway.running(), anyio.create_task_group() as group:
        group.start_soon(lambda: call(gateway, "probe__pid", begun=str(old), go=str(go)))
        await eventually(lambda: bool(pids(old)))
        (place / "handlers.py").write_text("raise ValueError('no')")
        broken = error_of(await call(gateway, "probe__pid", begun=str(tmp_path / "new")))
        go.touch()

        assert broken["name"] == "ValueError"
        await eventually(lambda: not runs(pids(old)[0]))


async def test_a_call_given_up_while_the_file_is_loaded_leaves_no_process_behind_after_the_next_change(
    tmp_path: Path,
) -> None:
    place = python(tmp_path / "tools", "probe", loads_slowly(tmp_path), *EXPORTS)
    gateway = gateway_over(tmp_path, tmp_path / "tools")

    async with gateway.running():
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: call(gateway, "probe__pid", begun=str(tmp_path / "never")))
            await eventually(lambda: bool(pids(tmp_path / "loading")))
            group.cancel_scope.cancel()
        (place / "handlers.py").write_text(WAITS)
        after = await call(gateway, "probe__pid", begun=str(tmp_path / "new"))
        (given_up,) = pids(tmp_path / "loading")

        await eventually(lambda: not runs(given_up))

    assert not after.is_error
    assert not (tmp_path / "never").exists()


async def test_a_resource_that_changes_while_it_is_loaded_leaves_no_process_behind(tmp_path: Path) -> None:
    place = python(tmp_path / "tools", "probe", loads_slowly(tmp_path), *EXPORTS)
    gateway = gateway_over(tmp_path, tmp_path / "tools")
    loading, old = tmp_path / "loading", tmp_path / "old"

    async with gateway.running(), anyio.create_task_group() as group:
        group.start_soon(lambda: call(gateway, "probe__pid", begun=str(old)))
        await eventually(lambda: bool(pids(loading)))
        before = gateway.declared.documents
        (place / "tool.yaml").write_text((place / "tool.yaml").read_text().replace("For tests.", "Changed."))
        await eventually(lambda: gateway.declared.documents is not before)
        (tmp_path / "load").touch()
        await eventually(lambda: bool(pids(old)))

        await eventually(lambda: not runs(pids(old)[0]))


async def test_what_is_loaded_when_the_server_closes_ends_with_it(tmp_path: Path) -> None:
    python(tmp_path / "tools", "probe", loads_slowly(tmp_path), *EXPORTS)
    gateway = gateway_over(tmp_path, tmp_path / "tools")
    texts: list[str] = []

    async def wait() -> None:
        texts.append((await call(gateway, "probe__pid", begun=str(tmp_path / "never"))).text)

    async with anyio.create_task_group() as group, gateway.running():
        group.start_soon(wait)
        await eventually(lambda: bool(pids(tmp_path / "loading")))

    assert not any(runs(pid) for pid in pids(tmp_path / "loading"))
    assert "was ended while it was loaded" in texts[0]


async def test_calls_that_come_while_a_file_is_loaded_wait_for_the_same_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handler_worker, "START_S", 4.0)
    python(tmp_path / "tools", "probe", loads_slowly(tmp_path), *EXPORTS)
    gateway = gateway_over(tmp_path, tmp_path / "tools")
    errors: list[dict[str, str]] = []

    async def wait() -> None:
        errors.append(error_of(await call(gateway, "probe__pid", begun=str(tmp_path / "never"))))

    async with gateway.running(), anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(wait)

    assert len(pids(tmp_path / "loading")) == 1
    assert [error["code"] for error in errors] == ["E_TIMEOUT"] * 3
    assert "handlers.py was not loaded within 4 s" in errors[0]["message"]
    assert "belongs inside the handlers" in errors[0]["suggestion"]
    assert "timeoutMs" not in errors[0]["suggestion"]


async def test_the_time_of_a_call_covers_the_loading_which_goes_on_for_the_next_one(tmp_path: Path) -> None:
    python(tmp_path / "tools", "probe", loads_slowly(tmp_path), *EXPORTS)
    gateway = gateway_over(tmp_path, tmp_path / "tools")

    async with gateway.running():
        early = await call(gateway, "probe__quick", begun=str(tmp_path / "never"))
        (tmp_path / "load").touch()
        after = await call(gateway, "probe__pid", begun=str(tmp_path / "begun"))

    assert error_of(early)["code"] == "E_TIMEOUT"
    assert "within the 0.7 s of this call" in error_of(early)["message"]
    assert pids(tmp_path / "loading") == [int(after.text)]
