"""self-restart__request: what it refuses, and that the process which follows serves the same clients."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.core.rights import Rights
from tests.agents.scripted import Ground, ground
from tests.e2e import http_wire
from tests.e2e.goat import HttpGoat, Launch, http_goat
from tests.e2e.wire import Wire, text_of

TOOLSETS = ["core", "tasks", "base"]
RESTART = "self-restart__request"
BOUND_S = 60.0


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    """A server whose settings file turns the base tools on, and lets them run unasked."""
    workspace = tmp_path / "ws"
    workspace.mkdir()
    settings = tmp_path / "goat-mcp.json"
    settings.write_text(json.dumps({"catalog": {"toolsets": TOOLSETS}, "mode": "bypassPermissions", "sandbox": "off"}))
    return Launch(tmp_path / "own", workspace, options=("--config", str(settings)))


def turn_on(launch: Launch, *toolsets: str) -> None:
    file = Path(launch.options[1])
    settings = json.loads(file.read_text())
    file.write_text(json.dumps({**settings, "catalog": {"toolsets": list(toolsets)}}))


def names(answer: dict[str, Any]) -> list[str]:
    return [tool["name"] for tool in answer["result"]["tools"]]


@pytest.mark.anyio
async def test_with_tasks_running_it_restarts_by_force_only(tmp_path: Path) -> None:
    async with ground(tmp_path, catalog={"toolsets": TOOLSETS}) as on:
        on.gateway.restart.prevented = ""
        await on.call("Bash", {"command": "sleep 1000", "run_in_background": True})
        (task,) = on.gateway.services.tasks().running()
        refused = await on.call(RESTART, {"reason": "new settings"})
        was_wanted = on.gateway.restart.wanted.is_set()
        forced = await on.call(RESTART, {"reason": "new settings", "force": True})

        assert refused.text.splitlines() == [
            f"1 background task would end: {task.id} (sleep 1000)",
            "Wait for them with TaskOutput, or call again with force=true.",
            "[E_BUSY]",
        ]
        assert not was_wanted
        assert json.loads(forced.text) == {"restarting": True, "ends": [task.id]}
        assert (on.gateway.restart.wanted.is_set(), on.gateway.restart.reason) == (True, "new settings")


async def refusal(on: Ground, ctx: Any = None) -> str:
    return (await on.call(RESTART, {"force": True}, ctx)).text.splitlines()[0]


@pytest.mark.anyio
async def test_it_is_refused_where_it_cannot_be_or_is_not_the_callers_to_ask_for(tmp_path: Path) -> None:
    async with ground(tmp_path, catalog={"toolsets": TOOLSETS}) as on:
        unserved = await refusal(on)
        on.gateway.restart.prevented = ""
        of_agent = await refusal(on, replace(on.ctx, rights=Rights(depth=1)))
        await on.call("Bash", {"command": "sleep 1000", "run_in_background": True}, replace(on.ctx, principal="other"))
        with_others = await refusal(on)

        assert unserved == "this server cannot start itself again: no `goat-mcp serve` runs it"
        assert of_agent == "an agent cannot restart the server it runs in"
        assert with_others == "another client's tasks run here"
        assert not on.gateway.restart.wanted.is_set()


@pytest.mark.anyio
async def test_many_in_a_row_are_refused_with_the_time_of_the_next(tmp_path: Path) -> None:
    async with ground(tmp_path, catalog={"toolsets": TOOLSETS}) as on:
        on.gateway.restart.prevented = ""
        now_s = time.monotonic()
        on.gateway.restart.times_s = [now_s - 3, now_s - 2, now_s - 1]
        refused = await on.call(RESTART, {"force": True})
        was_wanted = on.gateway.restart.wanted.is_set()
        on.gateway.restart.times_s = [now_s - 33, now_s - 32, now_s - 31]
        later = await on.call(RESTART, {})

    said, suggestion, code = refused.text.splitlines()
    assert said in [f"this server has started itself again 3 times in a row; again in {left} s" for left in (8, 9)]
    assert (suggestion.split(".")[0], code) == ("Nothing was done", "[E_RATE]")
    assert refused.facts is not None and refused.facts["in_a_row"] == 3
    assert (was_wanted, later.is_error) == (False, False)


def list_changed(wire: Wire) -> bool:
    """Whether the client is told that its list of tools is an old one."""
    while "notifications/tools/list_changed" not in [notice["method"] for notice in wire.notices]:
        wire.next_message()
    return True


def test_over_stdio_the_same_connection_goes_on_with_the_new_settings(launch: Launch, tmp_path: Path) -> None:
    with Wire(launch.command, launch.environment, launch.workspace, tmp_path / "log") as wire:
        wire.handshake()
        before = names(wire.request("tools/list"))
        turn_on(launch, "core", "tasks", "base", "state")
        answer = wire.call(RESTART, {"reason": "a test"}, BOUND_S)
        after = names(wire.request("tools/list", timeout_s=BOUND_S))
        (launch.workspace / "a.txt").write_text("alpha\n")
        read = wire.call("Read", {"file_path": "@a.txt"})
        told = list_changed(wire)

    assert json.loads(text_of(answer)) == {"restarting": True, "ends": []}
    assert "TodoWrite" not in before
    assert "TodoWrite" in after
    assert "alpha" in text_of(read)
    assert told
    # Nothing of the second handshake reached the client.
    assert [line for line in wire.lines if b"goat-resume" in line or b"serverInfo" in line][1:] == []


def test_over_stdio_calls_that_run_and_a_half_sent_message_are_not_lost(launch: Launch, tmp_path: Path) -> None:
    with Wire(launch.command, launch.environment, launch.workspace, tmp_path / "log") as wire:
        wire.handshake()
        wire.text("Bash", {"command": "true"})
        slow = wire.start("tools/call", {"name": "Bash", "arguments": {"command": "sleep 2; echo slow one"}})
        wire.send_bytes(b'{"jsonrpc": "2.0", "id": "late", "met')
        frame: dict[str, Any] = {"name": RESTART, "arguments": {}}
        # The half of a message is completed only after the restart: a client's write may be cut anywhere.
        wire.send_bytes(b'hod": "ping"}\n')
        restart = wire.start("tools/call", frame)
        wire.send_bytes(b'{"jsonrpc": "2.0", "id": "half", "met')
        answers = [wire.answer(one, BOUND_S) for one in (slow, "late", restart)]
        wire.send_bytes(b'hod": "ping"}\n')
        half = wire.answer("half", BOUND_S)

    assert "slow one" in text_of(answers[0]["result"])
    assert "result" in answers[1] and "result" in answers[2]
    assert "result" in half


def test_settings_that_could_not_be_used_are_told_instead_of_ending_the_server(launch: Launch, tmp_path: Path) -> None:
    with Wire(launch.command, launch.environment, launch.workspace, tmp_path / "log") as wire:
        wire.handshake()
        Path(launch.options[1]).write_text('{"mode": "no such mode"}')
        refused = wire.call(RESTART, {}, BOUND_S)
        still = wire.text("Glob", {"pattern": "*"})

    assert refused["isError"] is True
    assert "no such mode" in text_of(refused)
    assert "[E_CONFIG]" in text_of(refused)
    assert still == "No files found"


def test_a_model_that_asks_for_it_again_and_again_is_stopped_and_the_server_serves_on(
    launch: Launch, tmp_path: Path
) -> None:
    with Wire(launch.command, launch.environment, launch.workspace, tmp_path / "log") as wire:
        wire.handshake()
        answers = [wire.call(RESTART, {}, BOUND_S) for _ in range(4)]
        still = wire.text("Glob", {"pattern": "*"})

    assert [bool(answer.get("isError")) for answer in answers] == [False, False, False, True]
    assert "3 times in a row; again in " in text_of(answers[-1])
    assert still == "No files found"


TODOS = {"todos": [{"content": "Rest", "status": "pending", "activeForm": "Resting"}]}


def test_over_http_the_same_address_serves_the_new_settings(launch: Launch) -> None:
    with http_goat(launch) as goat:
        before = http_wire.call(goat, "TodoWrite", TODOS).message["result"]
        session = http_wire.handshake(goat)
        turn_on(launch, "core", "tasks", "base", "state")
        answer = http_wire.call(goat, RESTART, {"reason": "a test"}).message["result"]
        waiting = http_wire.connect(goat)
        listening = said_to_listen(goat)
        after = http_wire.call(goat, "TodoWrite", TODOS).message["result"]
        old_session = http_wire.exchange(goat, http_wire.session_headers(session), PING)
        new_session = http_wire.handshake(goat)
        waiting.close()
        is_alive = goat.process.poll() is None

    assert "[E_TOOL_NOT_IN_CATALOG]" in text_of(before)
    assert json.loads(text_of(answer)) == {"restarting": True, "ends": []}
    assert (len(listening), len(set(listening))) == (2, 1)
    assert after.get("isError") is False
    assert old_session.status == 404
    assert new_session not in ("", session)
    assert is_alive


PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


def said_to_listen(goat: HttpGoat) -> list[str]:
    """The lines in which it has told its address, once the process after it has."""
    ends_at_s = time.monotonic() + BOUND_S
    while True:
        listening = [line for line in list(goat.said) if "listening" in line]
        if len(listening) > 1 or time.monotonic() > ends_at_s:
            return listening
        time.sleep(0.05)
