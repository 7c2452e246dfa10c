"""Whose calls are given up where too many wait for answers. ERA-5."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from goat_mcp.server.client_channel import AskedEnough, RawAnswer
from goat_mcp.server.suspended_call import SuspendedCall
from goat_mcp.server.suspended_calls import Patience, SuspendedCalls

pytestmark = pytest.mark.anyio

CTX = cast("Any", None)
QUESTION = types.ElicitRequest(
    params=types.ElicitRequestFormParams(message="Well?", requested_schema={"type": "object", "properties": {}})
)
ANSWER = types.ElicitResult(action="accept", content={})


async def asks(call: SuspendedCall) -> str:
    await call.ask(QUESTION, RawAnswer)
    return "answered"


@asynccontextmanager
async def suspended(monkeypatch: pytest.MonkeyPatch, *, of_one: int, of_all: int) -> AsyncGenerator[SuspendedCalls]:
    monkeypatch.setattr("goat_mcp.server.suspended_calls.MAX_SUSPENDED_OF_ONE", of_one)
    monkeypatch.setattr("goat_mcp.server.suspended_calls.MAX_SUSPENDED", of_all)
    calls = SuspendedCalls()
    async with anyio.create_task_group() as group:
        await group.start(calls.run)
        yield calls
        group.cancel_scope.cancel()


async def ask(calls: SuspendedCalls, principal: str, client: str = "") -> str:
    """The state that a call of this one's has left."""
    asked = await calls.start(CTX, f"{principal}:{client}", principal, asks)
    assert isinstance(asked, types.InputRequiredResult)
    assert asked.request_state is not None
    return asked.request_state


async def outcome(calls: SuspendedCalls, principal: str, state: str, client: str = "") -> str:
    try:
        result = await calls.resume(CTX, f"{principal}:{client}", principal, state, {"q1": ANSWER}, asks)
    except MCPError as lost:
        return str(lost.error.data["reason"])
    assert isinstance(result, str)
    return result


async def test_who_parks_too_many_calls_loses_the_oldest_of_its_own_whatever_clients_it_comes_by(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with suspended(monkeypatch, of_one=3, of_all=100) as calls:
        theirs = await ask(calls, "somebody")
        mine = [await ask(calls, "me", f"client {number}") for number in range(5)]
        outcomes = [await outcome(calls, "me", state, f"client {number}") for number, state in enumerate(mine)]
        kept = await outcome(calls, "somebody", theirs)

    assert outcomes == ["parked_call_lost"] * 2 + ["answered"] * 3
    assert kept == "answered"


async def test_where_all_have_too_many_together_whoever_has_most_loses_its_oldest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with suspended(monkeypatch, of_one=4, of_all=6) as calls:
        few = [await ask(calls, "few")]
        many = [await ask(calls, "many") for _ in range(4)]
        some = [await ask(calls, "some") for _ in range(2)]
        outcomes = {
            "few": [await outcome(calls, "few", state) for state in few],
            "many": [await outcome(calls, "many", state) for state in many],
            "some": [await outcome(calls, "some", state) for state in some],
        }

    lost, answered = ["parked_call_lost"], ["answered"]
    assert outcomes == {"few": answered, "many": lost + answered * 3, "some": answered * 2}


async def test_who_has_as_many_as_anybody_takes_nobodys_place(monkeypatch: pytest.MonkeyPatch) -> None:
    async with suspended(monkeypatch, of_one=4, of_all=4) as calls:
        one = [await ask(calls, "one") for _ in range(2)]
        two = [await ask(calls, "two") for _ in range(3)]
        outcomes = [
            [await outcome(calls, name, state) for state in states] for name, states in (("one", one), ("two", two))
        ]

    assert outcomes == [["answered"] * 2, ["parked_call_lost"] + ["answered"] * 2]


@pytest.mark.parametrize(("before", "rounds"), [(0, 10), (1, 9)], ids=["all of one call", "one was for roots"])
async def test_a_client_is_asked_ten_times_for_one_call_and_then_no_more(before: int, rounds: int) -> None:
    # ERA-4
    refused: list[AskedEnough] = []

    async def asks_for_ever(call: SuspendedCall) -> str:
        try:
            while True:
                await call.ask_all({"q": QUESTION})
        except AskedEnough as enough:
            refused.append(enough)
            return "ended"

    calls, asked = SuspendedCalls(), 0
    stop: str | types.InputRequiredResult = ""
    async with anyio.create_task_group() as group:
        await group.start(calls.run)
        stop = await calls.start(CTX, "me", "me", asks_for_ever, rounds_before=before)
        while isinstance(stop, types.InputRequiredResult):
            asked += 1
            (key,), state = stop.input_requests or {}, stop.request_state
            assert state is not None
            stop = await calls.resume(CTX, "me", "me", state, {key: ANSWER}, asks_for_ever)
        group.cancel_scope.cancel()

    assert (asked, stop) == (rounds, "ended")
    assert [str(enough) for enough in refused] == ["this call has asked its client 10 times already"]


async def test_a_key_of_a_detached_call_means_one_question_for_ever() -> None:
    """SEP-2663: a client drops what it has seen under a key before."""
    asked: list[str] = []

    async def asks_twice(call: SuspendedCall) -> str:
        await anyio.sleep(0.05)
        for _ in range(2):
            await call.ask_all({"name": QUESTION})
        return "answered"

    async def take_over(call: SuspendedCall) -> str:
        changed = anyio.Event()
        call.detach(lambda: changed.set())
        while not call.ended.is_set():
            for key in call.open_questions():
                asked.append(key)
                call.answer({key: ANSWER})
            with anyio.move_on_after(0.01):
                await changed.wait()
            changed = anyio.Event()
        return "taken over"

    calls, answer = SuspendedCalls(), ""
    async with anyio.create_task_group() as group:
        await group.start(calls.run)
        answer = await calls.start(CTX, "me", "me", asks_twice, patience=Patience(0.001, take_over))
        group.cancel_scope.cancel()

    assert answer == "taken over"
    assert len(asked) == len(set(asked)) == 2 and asked[0] == "name"


async def test_a_detached_call_asks_ten_times_and_then_no_more() -> None:
    refused: list[AskedEnough] = []

    async def asks_for_ever(call: SuspendedCall) -> str:
        await anyio.sleep(0.05)
        try:
            while True:
                await call.ask_all({"q": QUESTION})
        except AskedEnough as enough:
            refused.append(enough)
            return "ended"

    async def take_over(call: SuspendedCall) -> str:
        number = 0

        def answer() -> None:
            nonlocal number
            for key in call.open_questions():
                number += 1
                call.answer({key: ANSWER})

        call.detach(answer)
        with anyio.fail_after(10):
            await call.ended.wait()
        return f"{number}"

    calls, asked = SuspendedCalls(), ""
    async with anyio.create_task_group() as group:
        await group.start(calls.run)
        asked = await calls.start(CTX, "me", "me", asks_for_ever, patience=Patience(0.001, take_over))
        group.cancel_scope.cancel()

    assert (asked, len(refused)) == ("10", 1)
