"""A client that asked for progress hears of a declared tool that is long at work, whatever runs it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest

from goat_mcp.core import heartbeat
from goat_mcp.core.context import ToolContext
from tests.manifests.declared import gateway_over, tool, write

pytestmark = pytest.mark.anyio

WAIT = """
import os, time
def wait(ctx, input):
    while not os.path.exists(input["go"]):
        time.sleep(0.01)
    return "went"
handlers = {"wait": wait}
"""
PROGRAM = f"""#!{sys.executable}
import json, os, sys, time
go = json.load(sys.stdin)["go"]
while not os.path.exists(go):
    time.sleep(0.01)
print(json.dumps("went"))
"""
PYTHON: Mapping[str, object] = {"entry": "./handlers.py", "handlers_py": WAIT}
COMMAND: Mapping[str, object] = {"entry": {"command": ["./wait.py"]}, "wait_py": PROGRAM}


@pytest.mark.parametrize("given", [PYTHON, COMMAND], ids=["python", "command"])
async def test_a_long_call_shows_signs_of_life(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: Mapping[str, str]
) -> None:
    monkeypatch.setattr(heartbeat, "HEARTBEAT_S", 0.01)
    files = {name: text for name, text in given.items() if name != "entry"}
    write(tmp_path / "tools", tool("probe", given["entry"], "wait"), **files)
    gateway = gateway_over(tmp_path, tmp_path / "tools", mode="bypassPermissions")
    go = tmp_path / "go"
    heard: list[tuple[float, str | None]] = []

    async def note(done: float, total: float | None = None, message: str | None = None, **_: object) -> None:
        heard.append((done, message))
        if len(heard) == 4:
            go.touch()

    with anyio.fail_after(60):
        async with gateway.running():
            ctx = ToolContext(call_id="1", wants_progress=True, progress=note)
            result = await gateway.call("probe__wait", {"go": str(go)}, ctx)

    assert (result.is_error, result.text) == (False, "went")
    (_, started), *beats, (_, ended) = heard
    assert (started, str(ended).partition(" in ")[0]) == ("probe__wait started", "probe__wait finished")
    assert {message for _, message in beats} == {"probe__wait is at work"}
    assert heard == sorted(heard)
