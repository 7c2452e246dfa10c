"""Approvals of real servers: decided from elsewhere, around a kill of the server, and for clients of three kinds."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest
from mcp.client.context import ClientRequestContext
from mcp_types import ElicitRequestParams, ElicitResult

from goat_mcp.calls.approvals.record import Approval, Status, Verdict
from goat_mcp.calls.approvals.store import FILE_NAME, ApprovalStore
from goat_mcp.calls.approvals.wording import lines_of
from goat_mcp.gateway.status.requests import RequestKind, UserRequest
from goat_mcp.state.directory import StateDirectory
from tests.e2e.goat import Launch, connected, http_goat
from tests.e2e.wire import Wire, text_of

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]

T = TypeVar("T")
WITHIN_S = 30.0


def asks(launch: Launch, *, wait_s: float) -> Launch:
    return replace(launch, options=("--set", "approval.by=elicit", "--set", f"approval.wait_s={wait_s}"))


def store_of(launch: Launch) -> ApprovalStore:
    return ApprovalStore(StateDirectory(launch.folder / "state"))


def until(look: Callable[[], T]) -> T:
    """What `look` finds, as soon as it finds something."""
    ends_at_s = time.monotonic() + WITHIN_S
    while not (found := look()):
        assert time.monotonic() < ends_at_s, "nothing came"
        time.sleep(0.05)
    return found


def only(found: list[Approval]) -> Approval:
    (one,) = found
    return one


def test_a_server_that_is_killed_between_approval_and_run_runs_the_call_once_after_its_restart(launch: Launch) -> None:
    store, arguments = store_of(launch), {"command": "echo ran >> ran.txt"}
    with Wire(asks(launch, wait_s=0).command, launch.environment, launch.workspace) as wire:
        wire.handshake()
        pending = wire.call("Bash", arguments)
        store.decide(only(store.waiting()).id, Verdict(approved=True), "terminal")
        wire.process.kill()
        wire.process.wait(WITHIN_S)

    assert "[E_APPROVAL_PENDING]" in text_of(pending)
    assert not (launch.workspace / "ran.txt").exists()
    with Wire(asks(launch, wait_s=0).command, launch.environment, launch.workspace) as wire:
        wire.handshake()
        outcomes = [wire.call("Bash", arguments) for _ in range(2)]

    assert not outcomes[0].get("isError"), outcomes[0]
    assert "[E_APPROVAL_PENDING]" in text_of(outcomes[1])
    assert (launch.workspace / "ran.txt").read_text() == "ran\n"


def test_a_call_whose_server_is_killed_while_it_runs_does_not_run_again(launch: Launch) -> None:
    store, arguments = store_of(launch), {"command": "echo ran >> ran.txt; sleep 60"}
    with Wire(asks(launch, wait_s=0).command, launch.environment, launch.workspace) as wire:
        wire.handshake()
        wire.call("Bash", arguments)
        store.decide(only(store.waiting()).id, Verdict(approved=True), "terminal")
        wire.start("tools/call", {"name": "Bash", "arguments": arguments})
        until((launch.workspace / "ran.txt").exists)
        wire.process.send_signal(signal.SIGKILL)
        wire.process.wait(WITHIN_S)

    decided = only(store.newest_first())
    assert decided.used_by, "the record says which call ran by the approval"
    with Wire(asks(launch, wait_s=0).command, launch.environment, launch.workspace) as wire:
        wire.handshake()
        again = wire.call("Bash", arguments)

    assert "[E_APPROVAL_PENDING]" in text_of(again)
    assert (launch.workspace / "ran.txt").read_text() == "ran\n"


_DECIDE = """
import json, sys
from pathlib import Path
from goat_mcp.calls.approvals.record import DecidedBefore, Verdict
from goat_mcp.calls.approvals.store import ApprovalStore
from goat_mcp.state.directory import StateDirectory

store = ApprovalStore(StateDirectory(Path(sys.argv[1])))
ids = json.loads(sys.argv[3])
sys.stdin.readline()
won = []
for id in ids:
    try:
        store.decide(id, Verdict(approved=True), sys.argv[2])
        won.append(id)
    except DecidedBefore as before:
        assert before.approval.decided_by in ("first", "second")
print(json.dumps(won))
"""


def test_of_fifty_approvals_that_two_processes_decide_at_once_each_is_decided_once(launch: Launch) -> None:
    store = store_of(launch)
    with Wire(asks(launch, wait_s=0).command, launch.environment, launch.workspace) as wire:
        wire.handshake()
        for number in range(50):
            wire.call("Bash", {"command": f"echo {number} > {number}.txt"})
    ids = [one.id for one in store.waiting()]
    deciders = [
        subprocess.Popen(
            [sys.executable, "-c", _DECIDE, str(launch.folder / "state"), name, json.dumps(order)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ,
        )
        for name, order in (("first", ids), ("second", ids[::-1]))
    ]
    try:
        for decider in deciders:
            assert decider.stdin is not None
            decider.stdin.write("\n")
            decider.stdin.flush()
        won = [json.loads(decider.communicate(timeout=WITHIN_S)[0]) for decider in deciders]
    finally:
        for decider in deciders:
            decider.kill()

    assert len(ids) == 50
    assert sorted(won[0] + won[1]) == sorted(ids)
    assert [one.decided_by for one in store.newest_first() if one.id in won[0]] == ["first"] * len(won[0])


async def test_clients_of_three_kinds_have_the_same_queue_and_the_same_words(launch: Launch) -> None:
    store, shown = store_of(launch), list[str]()
    arguments = {"command": "echo ran >> ran.txt"}

    async def show(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        shown.append(params.message)
        return ElicitResult(action="accept", content={"decision": "allow_once"})

    def approve() -> None:
        waiting = only(until(store.waiting))
        shown.append("\n".join(lines_of(waiting.request)))
        store.decide(waiting.id, Verdict(approved=True), "page")

    results: list[Any] = []
    with http_goat(asks(launch, wait_s=WITHIN_S)) as goat:
        for mode, options in (
            ("legacy", {"elicitation_callback": show}),
            ("2026-07-28", {"elicitation_callback": show}),
        ):
            async with connected(goat, mode, **options) as client:
                results.append(await client.call_tool("Bash", arguments))
        async with connected(goat, "legacy") as client:
            decider = threading.Thread(target=approve)
            decider.start()
            results.append(await client.call_tool("Bash", arguments))
            await anyio.to_thread.run_sync(decider.join)

    assert [result.is_error for result in results] == [False] * 3, results
    assert (launch.workspace / "ran.txt").read_text() == "ran\n" * 3
    assert len(shown) == 3 and len(set(shown)) == 1
    decided = store.newest_first()
    assert {one.status for one in decided} == {Status.APPROVED} and all(one.used_by for one in decided)
    assert sorted(one.decided_by.partition(" in ")[0] for one in decided) == ["form", "form", "page"]


def test_what_a_session_was_granted_can_be_taken_back(launch: Launch) -> None:
    store, arguments = store_of(launch), {"command": "echo ran"}
    with Wire(asks(launch, wait_s=0).command, launch.environment, launch.workspace) as wire:
        wire.handshake()
        wire.request("tools/list")
        wire.call("Bash", arguments)
        rules = next(one.rules for one in only(store.waiting()).request.choices if one.scope == "session")
        store.decide(only(store.waiting()).id, Verdict(True, "session", rules), "page")
        granted = [wire.call("Bash", arguments) for _ in range(2)]

        grant = store.take_back(only(store.session_grants()).id)
        state = StateDirectory(launch.folder / "state")
        until(lambda: list((state.path / "status").glob("*.json")))
        request = UserRequest(state, RequestKind.REVOKE, grant.id)
        until(lambda: [one for one in request.answers() if one["state"] == "revoked"])
        request.end()
        after = wire.call("Bash", arguments)

    assert not any(one.get("isError") for one in granted)
    assert "[E_APPROVAL_PENDING]" in text_of(after)
    assert store.session_grants() == []


def test_a_client_that_wants_progress_reads_what_its_call_waits_for(launch: Launch) -> None:
    store = store_of(launch)
    with Wire(asks(launch, wait_s=WITHIN_S).command, launch.environment, launch.workspace) as wire:
        wire.handshake()
        params = {"name": "Bash", "arguments": {"command": "echo ran"}, "_meta": {"progressToken": 7}}
        request = wire.start("tools/call", params)
        notice = wire.next_message()
        waiting = only(store.waiting())
        store.decide(waiting.id, Verdict(approved=False, reason="not today"), "terminal")
        answer = wire.answer(request)["result"]

    assert notice["method"] == "notifications/progress"
    assert f"goat-mcp approve {waiting.short_id}" in notice["params"]["message"]
    assert "not today" in text_of(answer)


@pytest.mark.parametrize("stop", ["the client ends the input", "SIGTERM"])
def test_a_server_with_waiting_calls_ends_in_time_while_another_program_writes_the_queue(
    launch: Launch, stop: str
) -> None:
    store = store_of(launch)
    with Wire(asks(launch, wait_s=WITHIN_S).command, launch.environment, launch.workspace) as wire:
        wire.handshake()
        for number in range(10):
            wire.start("tools/call", {"name": "Bash", "arguments": {"command": f"echo {number}"}})
        until(lambda: len(store.waiting()) == 10)
        other = sqlite3.connect(launch.folder / "state" / FILE_NAME, isolation_level=None)
        try:
            other.execute("BEGIN IMMEDIATE")
            if stop == "SIGTERM":
                wire.process.terminate()
            else:
                assert wire.process.stdin is not None
                wire.process.stdin.close()

            wire.process.wait(10)  # R-STOP-1 says 5; each call by itself would wait 5 for the file
        finally:
            other.close()


def test_deny_asks_nobody_elsewhere(launch: Launch, tmp_path: Path) -> None:
    started = replace(launch, options=("--set", "approval=deny"))
    with Wire(started.command, started.environment, started.workspace) as wire:
        wire.handshake()
        refused = wire.call("Bash", {"command": "echo ran"})

    assert "[E_PERMISSION]" in text_of(refused)
    assert not store_of(launch).exists
