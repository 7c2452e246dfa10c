"""What a real server lets run unasked: by transport, mode and rule (design D8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.e2e.goat import Launch, connected, http_goat
from tests.e2e.wire import Wire, text_of

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]


@pytest.mark.parametrize(
    ("options", "code"), [(("approval.wait_s=0",), "E_APPROVAL_PENDING"), (("approval=deny",), "E_PERMISSION")]
)
async def test_over_http_a_command_needs_an_answer_and_nobody_there_means_no(
    launch: Launch, options: Sequence[str], code: str
) -> None:
    with http_goat(replace(launch, options=("--set", *options))) as goat:
        async with connected(goat, "2026-07-28") as client:
            command = await client.call_tool("Bash", {"command": "touch ran"})
            read = await client.call_tool("Read", {"file_path": str(launch.workspace / "notes.md")})

    said = text_of(command.model_dump(mode="json", by_alias=True))
    assert command.is_error
    assert f"[{code}]" in said
    assert "Bash" in said
    assert "allow" in said
    assert not read.is_error
    assert not (launch.workspace / "ran").exists()


@pytest.mark.parametrize(
    ("options", "tool", "code"),
    [
        (("--mode", "plan"), "Write", "E_PLAN_MODE"),
        (("--mode", "dontAsk"), "Write", "E_PERMISSION"),
        (("--set", 'permissions.deny=["Write"]', "--mode", "bypassPermissions"), "Write", "E_PERMISSION"),
        (("--set", 'permissions.deny=["Read"]'), "Read", "E_PERMISSION"),
    ],
)
def test_a_mode_or_a_rule_refuses(launch: Launch, options: Sequence[str], tool: str, code: str) -> None:
    started = replace(launch, options=tuple(options))
    new = launch.workspace / "new.txt"
    arguments = {"Write": {"file_path": str(new), "content": "x"}, "Read": {"file_path": str(new)}}
    with Wire(started.command, started.environment, started.workspace) as wire:
        wire.handshake()

        refused = wire.call(tool, arguments[tool])
        others = (
            wire.text("Bash", {"command": "echo ran"}) if tool == "Read" else wire.text("Glob", {"pattern": "*.md"})
        )

    assert refused["isError"] is True
    assert f"[{code}]" in text_of(refused)
    assert others == ("ran" if tool == "Read" else str(launch.workspace / "notes.md"))
    assert not new.exists()


def test_on_stdio_the_host_has_asked_already(launch: Launch) -> None:
    with Wire(launch.command, launch.environment, launch.workspace) as wire:
        wire.handshake()

        assert wire.text("Bash", {"command": "echo ran"}) == "ran"
