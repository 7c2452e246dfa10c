"""Calls on the shortest way: who gets which answer, and what is written when."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest
from mcp_types import ErrorData, JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from goat_mcp.upstreams.transports.child_pipes import DirectDispatch

pytestmark = pytest.mark.anyio


@dataclass
class Pipe:
    written: list[JSONRPCMessage] = field(default_factory=list[JSONRPCMessage])
    refuses: Exception | None = None

    async def send_request(self, request_id: int, method: str, params: dict[str, Any]) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.written.append(JSONRPCRequest(jsonrpc="2.0", id=request_id, method=method, params=params))

    def post(self, message: JSONRPCMessage) -> None:
        self.written.append(message)

    @property
    def methods(self) -> list[str]:
        return [message.method for message in self.written if isinstance(message, JSONRPCRequest | JSONRPCNotification)]


def response(request_id: int | str, **result: Any) -> JSONRPCResponse:
    return JSONRPCResponse(jsonrpc="2.0", id=request_id, result=result)


async def test_answers_find_their_calls_in_any_order() -> None:
    calls, pipe = DirectDispatch(), Pipe()
    answers: dict[int, object] = {}
    taken: list[bool] = []

    async def ask(number: int) -> None:
        answers[number] = await calls.ask(pipe, number, "tools/call", {})

    refused = JSONRPCError(jsonrpc="2.0", id=2, error=ErrorData(code=1, message="no"))
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for number in (1, 2, 3):
                group.start_soon(ask, number)
            await anyio.wait_all_tasks_blocked()
            taken += [calls.take(message) for message in (response("3", x=3), refused, response(1, x=1))]

    assert taken == [True, True, True]
    assert answers == {1: response(1, x=1), 2: refused, 3: response("3", x=3)}


@pytest.mark.parametrize("stray", [response(9), response("x"), response("99999999999999999999"), response("²")])
async def test_what_nobody_waits_for_is_left_to_others(stray: JSONRPCMessage) -> None:
    calls, pipe = DirectDispatch(), Pipe()
    nothing: dict[str, Any] = {}
    async with anyio.create_task_group() as group:
        group.start_soon(calls.ask, pipe, 1, "tools/call", nothing)
        await anyio.wait_all_tasks_blocked()

        assert not calls.take(stray)
        assert not calls.take(JSONRPCRequest(jsonrpc="2.0", id=1, method="ping"))
        assert calls.take(response(1))
        assert not calls.take(response(1))


async def test_a_cancelled_call_is_cancelled_on_the_wire_and_its_late_answer_taken_by_nobody() -> None:
    calls, pipe = DirectDispatch(), Pipe()

    with anyio.move_on_after(0.01):
        await calls.ask(pipe, 7, "tools/call", {})

    assert pipe.methods == ["tools/call", "notifications/cancelled"]
    last = pipe.written[-1]
    assert isinstance(last, JSONRPCNotification) and (last.params or {})["requestId"] == 7
    assert not calls.take(response(7))


async def test_a_call_that_was_cancelled_before_it_began_is_never_sent() -> None:
    calls, pipe = DirectDispatch(), Pipe()

    with anyio.CancelScope() as scope:
        scope.cancel()
        await calls.ask(pipe, 7, "tools/call", {})

    assert pipe.written == []


async def test_the_end_of_the_connection_is_the_end_of_every_wait() -> None:
    calls, pipe = DirectDispatch(), Pipe()
    answers: list[object] = []

    async def ask() -> None:
        answers.append(await calls.ask(pipe, 1, "tools/call", {}))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            calls.end()
        await ask()

    assert answers == [None, None]
    assert pipe.methods == ["tools/call"]


@pytest.mark.parametrize("problem", [anyio.ClosedResourceError(), anyio.BrokenResourceError()])
async def test_a_pipe_that_is_gone_is_the_end_of_the_connection(problem: Exception) -> None:
    assert await DirectDispatch().ask(Pipe(refuses=problem), 1, "tools/call", {}) is None


async def test_a_log_message_is_told_before_the_answer_that_came_after_it() -> None:
    told: list[str] = []
    taken: list[bool] = []
    calls, pipe = DirectDispatch(on_log=lambda method, params: told.append(str((params or {}).get("data")))), Pipe()
    logged = JSONRPCNotification(jsonrpc="2.0", method="notifications/message", params={"level": "info", "data": "a"})
    nothing: dict[str, Any] = {}

    async def ask() -> None:
        await calls.ask(pipe, 1, "tools/call", nothing)
        told.append("answered")

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            taken += [calls.take_log(logged), calls.take(response(1))]

    assert taken == [True, True]
    assert told == ["a", "answered"]


async def test_notices_that_are_no_log_messages_are_left_to_others() -> None:
    changed = JSONRPCNotification(jsonrpc="2.0", method="notifications/tools/list_changed")

    assert not DirectDispatch().take_log(changed)
