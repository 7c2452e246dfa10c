"""Calls that arrive together: what conflicts takes turns, and everything else does not wait (goa, `conc-001`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from goat_mcp.core.context import ToolContext
from goat_mcp.core.result import ToolResult
from tests.gateway.test_gateway import gateway

pytestmark = pytest.mark.anyio

BOUND_S = 60.0
LINES = [f"line {number}" for number in range(5)]


async def test_conc_001_edits_of_one_file_and_of_others_all_land(tmp_path: Path) -> None:
    workspace = tmp_path / "ws"
    workspace.mkdir()
    files = [workspace / f"other-{number}" for number in range(5)] + [workspace / "same"]
    for file in files:
        file.write_text("\n".join(LINES) + "\n")
    served = gateway(tmp_path, workspace=[workspace], files={"read_before_write": "off"})
    results: list[ToolResult] = []

    async def edit(file: Path, number: int) -> None:
        arguments = {"file_path": str(file), "old_string": LINES[number], "new_string": f"new {number}"}
        results.append(await served.call("Edit", arguments, ToolContext(call_id=f"{file.name}-{number}")))

    with anyio.fail_after(BOUND_S):
        async with served.running(), anyio.create_task_group() as group:
            for number in range(5):
                group.start_soon(edit, files[-1], number)
                group.start_soon(edit, files[number], number)

    assert [result.text for result in results if result.is_error] == []
    assert files[-1].read_text() == "".join(f"new {number}\n" for number in range(5))
    for number, file in enumerate(files[:-1]):
        expected = [f"new {number}" if line == LINES[number] else line for line in LINES]
        assert file.read_text().splitlines() == expected


async def test_conc_001_commands_of_a_session_take_turns_and_nothing_else_waits_for_them(tmp_path: Path) -> None:
    workspace = tmp_path / "ws"
    workspace.mkdir()
    (workspace / "a.txt").write_text("hello\n")
    log, started, gate = workspace / "log", workspace / "started", workspace / "gate"
    served = gateway(tmp_path, workspace=[workspace])

    async def call(tool: str, session: str = "local", **arguments: Any) -> ToolResult:
        return await served.call(tool, arguments, ToolContext(call_id="c", session_key=session))

    async def run(command: str) -> None:
        result = await call("Bash", command=command)
        assert not result.is_error, result.text

    beside: list[ToolResult] = []
    with anyio.fail_after(BOUND_S):
        async with served.running(), anyio.create_task_group() as group:
            group.start_soon(run, f"touch {started}; while [ ! -e {gate} ]; do sleep 0.05; done; echo one >> {log}")
            while not await anyio.Path(started).exists():  # noqa: ASYNC110  # another process makes it
                await anyio.sleep(0.05)
            group.start_soon(run, f"echo two >> {log}")
            beside.append(await call("Read", file_path=str(workspace / "a.txt")))
            # By the time five commands of somebody else have run, the second would have, had it not waited.
            beside += [await call("Bash", session="other", command="echo theirs") for _ in range(5)]
            gate.touch()

    assert [result.text for result in beside] == ["1\thello", *["theirs"] * 5]
    assert log.read_text() == "one\ntwo\n"
