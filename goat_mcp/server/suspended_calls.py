"""Calls that wait for a 2026-07-28 client: it gets a question as the result, and calls again with the answer.

The call's own coroutine goes on from the question. If it has only asked for permission, nothing has happened yet: then
a process that does not know the call can start it again with the answer, which holds once and for the very same
question (R-PERM-4). The SDK seals the state that travels, with tool, arguments, principal and expiry in it.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
import anyio.abc
import mcp_types as types
from mcp.shared.exceptions import MCPError

from goat_mcp.server.client_channel import Context
from goat_mcp.server.suspended_call import Body, Done, Pin, SuspendedCall, T, no_pin
from goat_mcp.server.travelling_state import EarlyAnswer, TravellingState
from goat_mcp.state.database import OneTimeTokens

KEPT_S = 300.0
"""ERA-5. The SDK's seal on a state lasts as long."""
MAX_SUSPENDED_OF_ONE = 100
"""Of one principal; past that its oldest goes."""
MAX_SUSPENDED = 400
"""Of all. Past that the oldest goes of whoever has most, so that nobody loses one to somebody who has more."""
PARKED_CALL_LOST = "parked_call_lost"


def may_change() -> bool:
    """Nothing is known of what a call does."""
    return False


@dataclass(frozen=True)
class Patience:
    """How long a request waits for its call (0: until it ends), and what takes the call over then: that returns the
    answer to the request, or None if the request goes on waiting."""

    wait_s: float
    take_over: Callable[[SuspendedCall], Awaitable[Any]]

    async def instead(self, call: SuspendedCall) -> Any:
        """The answer of what has taken the call over; None if the call has ended, asks or is waited for."""
        if not self.wait_s:
            return None
        with anyio.move_on_after(max(0.0, call.round_started_s + self.wait_s - time.monotonic())):
            await call.stopped()
            return None
        return await self.take_over(call)


class SuspendedCalls:
    """All calls of one server that have asked and not been answered. If they are too many, some are given up."""

    def __init__(self, kept_s: float = KEPT_S, tokens: OneTimeTokens | None = None) -> None:
        """`tokens` are needed if other processes can open what this one has sealed."""
        self._kept_s = kept_s
        self._tokens = tokens
        self._suspended: dict[str, SuspendedCall] = {}
        self._group: anyio.abc.TaskGroup | None = None
        self._none_begun: anyio.Event | None = None
        self.replica = ""
        """This server's name among several, which others send answers to."""

    def __len__(self) -> int:
        return len(self._suspended)

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Be the home of all calls until cancelled."""
        async with anyio.create_task_group() as self._group:
            task_status.started()
            await anyio.sleep_forever()

    async def start(
        self,
        ctx: Context,
        owner: str,
        principal: str,
        body: Body[T],
        *,
        pin: Pin = no_pin,
        early: EarlyAnswer | None = None,
        rounds_before: int = 0,
        record: str = "",
        patience: Patience | None = None,
    ) -> T | types.InputRequiredResult:
        """Run a call until it ends or asks. `owner` may go on with it; of one `principal` there may be several.

        `rounds_before`: how often the client was asked before it began. `record`: what it wrote down in another
        process. `patience`: how long this request waits.
        """
        if self._group is None:
            raise RuntimeError("calls can be suspended only while the server runs")
        call = SuspendedCall(ctx, owner, principal, pin, early, rounds_before=rounds_before, record=record)
        self._group.start_soon(call.run, body)
        return await self._until_stop(call, patience)

    async def resume(
        self,
        ctx: Context,
        owner: str,
        principal: str,
        state: str,
        answers: Mapping[str, Any],
        body: Body[T],
        *,
        pin: Pin = no_pin,
        only_reads: Callable[[], bool] = may_change,
        patience: Patience | None = None,
    ) -> T | types.InputRequiredResult:
        """Go on with a call that asked; one that another process has suspended is started again, if nothing of it
        has happened. Raises `MCPError` for one that is answered, expired or another session's.

        `only_reads`: whether it is known that the call changes nothing."""
        travelled = TravellingState.read(state)
        token, mark = travelled.token, travelled.mark
        call = self._suspended.get(token)
        is_foreign = call is not None and call.owner != owner
        if is_foreign or not await self._is_open(token, mark, call):
            raise self._lost(travelled, only_reads())
        self._take(token)
        if call is None:
            given = [EarlyAnswer(mark, answer) for answer in answers.values()]
            only = given[0] if len(given) == 1 else None
            before, record = travelled.rounds, travelled.record
            return await self.start(
                ctx, owner, principal, body, pin=pin, early=only, rounds_before=before, record=record, patience=patience
            )
        if call.timer is not None:
            call.timer.cancel()
        call.resume(ctx, answers)
        return await self._until_stop(call, patience)

    def _lost(self, state: TravellingState, only_reads: bool) -> MCPError:
        if state.replica and state.replica != self.replica and not state.mark:
            what = f"the replica {state.replica}, which held this call, has ended"
        else:
            what = "this question was answered before, or has expired"
        then = "call again" if only_reads else "the call may have taken effect: look before you call again"
        effects = "none" if only_reads else "possible"
        return MCPError(types.INVALID_PARAMS, f"{what}; {then}", {"reason": PARKED_CALL_LOST, "effects": effects})

    async def none_begun(self) -> None:
        """Wait until no call is left that has done something and waits: another process could not start it again."""
        while any(not call.mark for call in self._suspended.values()):
            self._none_begun = anyio.Event()
            await self._none_begun.wait()
        self._none_begun = None

    def _take(self, token: str) -> SuspendedCall | None:
        call = self._suspended.pop(token, None)
        if self._none_begun is not None:
            self._none_begun.set()
        return call

    async def _is_open(self, token: str, mark: str, call: SuspendedCall | None) -> bool:
        if call is not None and token in call.closed:
            return True  # its answer counts no more, and the call goes on here
        if mark and self._tokens is not None:
            return await self._tokens.use(token)
        return token in self._suspended

    async def _until_stop(self, call: SuspendedCall, patience: Patience | None) -> Any:
        try:
            if patience is not None and (answer := await patience.instead(call)) is not None:
                return answer
            stop = await call.next_stop()
        except anyio.get_cancelled_exc_class():
            call.cancel()
            raise
        if isinstance(stop, Done):
            return stop.result
        token = secrets.token_urlsafe(16)
        if call.mark and self._tokens is not None:
            try:
                await self._tokens.issue(token)
                await call.may_be_started_elsewhere(token, partial(self._tokens.use, token))
            except BaseException:
                call.cancel()
                raise
        self._suspended[token] = call
        call.timer = asyncio.get_running_loop().call_later(self._kept_s, self._drop, token)
        self._make_room(call.principal)
        state = TravellingState(token, call.mark, self.replica, call.record, call.rounds)
        return types.InputRequiredResult(input_requests=dict(stop), request_state=state.text())

    def _make_room(self, principal: str) -> None:
        """Give up the oldest call of somebody who has too many, now that there is one more of `principal`."""
        number = Counter(call.principal for call in self._suspended.values())
        if number[principal] > MAX_SUSPENDED_OF_ONE:
            giving = principal
        elif len(self._suspended) > MAX_SUSPENDED:
            giving = max(number, key=lambda one: (number[one], one == principal))
        else:
            return
        self._drop(next(token for token, call in self._suspended.items() if call.principal == giving))

    def drop_all(self) -> None:
        """Give up all calls: their clients have been told that they are lost."""
        for token in list(self._suspended):
            self._drop(token)

    def _drop(self, token: str) -> None:
        call = self._take(token)
        if call is not None:
            if call.timer is not None:
                call.timer.cancel()
            call.cancel()
