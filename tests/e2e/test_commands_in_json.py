"""`bash`, `bg_exec` and `ssh_bash` through a real client, in both eras of the protocol."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.e2e.goat import Launch, connected
from tests.manifests.ssh_bash.ssh_server import ssh_server

pytestmark = pytest.mark.anyio
BOUND_S = 90.0
ERAS = pytest.mark.parametrize("era", ["legacy", "2026-07-28"])


def optional(launch: Launch, *more: str) -> Launch:
    return replace(launch, options=(*launch.options, "--toolset", "goa", "--toolset", "base", *more))


def text_of(result: Any) -> str:
    return result.content[0].text


def said(result: Any) -> Any:
    assert not result.is_error, result.content
    return json.loads(text_of(result))


@ERAS
async def test_a_client_runs_a_command_a_script_and_a_program_in_the_background(launch: Launch, era: str) -> None:
    with anyio.fail_after(BOUND_S):
        async with connected(optional(launch), era) as client:
            command = said(await client.call_tool("bash__exec", {"command": "echo 'echo $1 >&2' > s.sh; ls s.sh"}))
            script = said(await client.call_tool("bash__script", {"path": "s.sh", "args": ["a b"]}))
            started = said(await client.call_tool("bg_exec__start", {"command": "cat", "stdin": "given"}))
            output = await client.call_tool("TaskOutput", {"task_id": started["taskId"]})

    assert (command["stdout"], command["exitCode"]) == ("s.sh", 0)
    assert (script["stdout"], script["stderr"]) == ("", "a b")
    assert "\ngiven" in text_of(output)


@ERAS
async def test_a_client_runs_a_command_on_a_host_of_the_settings(tmp_path: Path, launch: Launch, era: str) -> None:
    with ssh_server(tmp_path / "server") as server:
        hosts = f"tools.ssh_bash.hosts={json.dumps({'far': server.host()})}"
        with anyio.fail_after(BOUND_S):
            async with connected(optional(launch, "--set", hosts), era) as client:
                done = said(
                    await client.call_tool("ssh_bash__exec", {"host": "far", "command": "echo $SSH_CONNECTION"})
                )

    assert done["stdout"].endswith(f" 127.0.0.1 {server.port}")
