"""Calls that wait for a 2026-07-28 client: it gets a question as the result, and calls again with the answer.

The call's own coroutine goes on from the question. If it has only asked for permission, nothing has happened yet: then
a process that does not know the call can start it again with the answer, which holds once and for the very same
question (R-PERM-4). The SDK seals the state that travels, with tool, arguments, principal and expiry in it.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import anyio
import anyio.abc
import mcp_types as types
from mcp.shared.exceptions import MCPError

from goat_mcp.core.context import AnswerNow
from goat_mcp.core.result import ToolResult
from goat_mcp.server.client_channel import (
    AnswerT,
    AskedEnough,
    ClientChannel,
    Context,
    Question,
    RawAnswer,
    parsed,
)
from goat_mcp.server.travelling_state import EarlyAnswer, TravellingState
from goat_mcp.state.database import OneTimeTokens

KEPT_S = 300.0
"""ERA-5. The SDK's seal on a state lasts as long."""
MAX_SUSPENDED_OF_ONE = 100
"""Of one principal; past that its oldest goes."""
MAX_SUSPENDED = 400
"""Of all. Past that the oldest goes of whoever has most, so that nobody loses one to somebody who has more."""
MAX_ROUNDS = 10
"""Clients stop after ten rounds of questions in one call, the one that may have asked for their roots included."""

QUESTION_KEPT_S = 3600.0
"""How long a call whose request is answered waits for the answer to a question of its own."""

T = TypeVar("T")
Body = Callable[["SuspendedCall"], Awaitable[T]]
Pin = Callable[[], str]
"""What stands for what a call would run, as that is now."""
PARKED_CALL_LOST = "parked_call_lost"


def no_pin() -> str:
    return ""


def may_change() -> bool:
    """Nothing is known of what a call does."""
    return False


@dataclass(frozen=True)
class Done:
    """What a call has returned."""

    result: Any


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


class SuspendedCall(ClientChannel):
    """One running call that can be left and come back to. A `ClientChannel` for what runs in it."""

    holds_the_request_open = False

    def __init__(
        self,
        ctx: Context,
        owner: str,
        principal: str,
        pin: Pin = no_pin,
        early: EarlyAnswer | None = None,
        *,
        rounds_before: int = 0,
    ) -> None:
        self.owner = owner
        self.principal = principal
        self.mark = ""
        """Of the question it waits for, if the call may be started again with the answer."""
        self.record = ""
        """What it has then to go on from."""
        self.record_before = "" if early is None else early.record
        """With what it was started again."""
        self._pin = pin
        self._early = early
        self.round_started_s = 0.0
        self.timer: asyncio.TimerHandle | None = None
        self._ctx = ctx
        self._scope = anyio.CancelScope()
        self._questions: dict[str, tuple[Question, asyncio.Future[Any]]] = {}
        self._wake = anyio.Event()
        self._questions_asked = 0
        self._rounds = rounds_before
        self._used_keys: set[str] = set()
        self._on_change: Callable[[], object] | None = None
        self.done: Done | None = None
        self.error: Exception | None = None
        self.ended = anyio.Event()
        self.last_progress = ""
        """What it said of itself since its request was answered."""
        self._instead: Done | None = None
        """What its request is answered with while it goes on."""
        self._start_round(ctx)

    async def ask(
        self, request: Question, answer: type[AnswerT], *, opens_call: bool = False, record: str = ""
    ) -> AnswerT:
        may_start_again = opens_call and (record or not self._questions_asked)
        self.mark, self.record = (self._mark_of(request), record) if may_start_again else ("", "")
        if self._early is not None and self.mark and self._early.mark == self.mark:
            given, self._early = self._early.answer, None
            return parsed(request, given, answer)
        self._check_rounds()
        key, answered = self._open("", request)
        self._asks()
        try:
            given = await self._given(answered)
        finally:
            self._questions.pop(key, None)
        return parsed(request, given, answer)

    async def ask_all(self, requests: Mapping[str, Question]) -> Mapping[str, dict[str, Any]]:
        self._check_rounds()
        self.mark = self.record = ""
        opened = {name: (request, *self._open(name, request)) for name, request in requests.items()}
        self._asks()
        try:
            return {
                name: parsed(request, await self._given(given), RawAnswer).raw()
                for name, (request, _, given) in opened.items()
            }
        finally:
            for _, key, _ in opened.values():
                self._questions.pop(key, None)

    def _open(self, name: str, request: Question) -> tuple[str, asyncio.Future[Any]]:
        """A question under a key that no other has: its own name where it has one."""
        self._questions_asked += 1
        taken = self._questions.keys() | self._used_keys
        key = name if name and name not in taken else f"{name or 'q'}{self._questions_asked}"
        if self.is_detached:
            self._used_keys.add(key)  # in a task, a key means one question for ever (SEP-2663)
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._questions[key] = (request, answered)
        return key, answered

    def _check_rounds(self) -> None:
        if self._rounds >= MAX_ROUNDS:
            raise AskedEnough(MAX_ROUNDS)

    def _mark_of(self, request: Question) -> str:
        """The same for the same question about what would run the same, to the same owner; no other."""
        text = f"{self.owner}\0{self._pin()}\0{request.model_dump_json()}"
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    async def run(self, body: Body[Any]) -> None:
        """The call itself, in a task of its own."""
        try:
            with self._scope:
                self.done = Done(await body(self))
        except Exception as error:
            self.error = error
        finally:  # also at the end of the server
            self.ended.set()
            self._wake.set()
            if self._on_change is not None:
                self._on_change()

    def cancel(self) -> None:
        self._scope.cancel()

    @property
    def is_detached(self) -> bool:
        """Whether its request has been answered, and the call goes on without it."""
        return self._on_change is not None

    def detach(self, on_change: Callable[[], object]) -> None:
        """Go on without the request. `on_change` is called when it asks, is answered, or has ended."""
        self._on_change = on_change
        self.round_started_s = time.monotonic() + QUESTION_KEPT_S

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        if not self.is_detached:  # there is no stream for it any more
            await super().notify(method, params)

    async def report_progress(
        self,
        done: float,
        total: float | None = None,
        message: str | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        if self.is_detached:
            self.last_progress = message or (f"{done:g} of {total:g}" if total else "")
        else:
            await super().report_progress(done, total, message, meta=meta)

    def _asks(self) -> None:
        self._wake.set()
        if self._on_change is not None:
            self._rounds += 1
            self._on_change()

    async def _given(self, answered: asyncio.Future[Any]) -> Any:
        if not self.is_detached:
            return await answered  # until the call is dropped
        try:
            return await asyncio.wait_for(answered, QUESTION_KEPT_S)
        except TimeoutError:
            message = f"the client has not answered within {QUESTION_KEPT_S:g} s"
            raise MCPError(types.INVALID_REQUEST, message) from None

    def leave(self) -> AnswerNow | None:
        """Go on without the request, which `AnswerNow` answers; None if it is over, or waits for an answer itself."""
        if self.is_left or self.ended.is_set() or self.open_questions():
            return None
        return self._answer_now

    async def _answer_now(self, result: ToolResult) -> None:
        self._instead = Done(result)
        self._wake.set()

    def resume(self, ctx: Context, answers: Mapping[str, Any]) -> None:
        """The client is back with answers; one it left out is asked for again."""
        self._start_round(ctx)
        self.answer(answers)

    def answer(self, answers: Mapping[str, Any]) -> None:
        """Those that are no answers to an open question are left aside."""
        for key, given in answers.items():
            if key in self._questions and not self._questions[key][1].done():
                self._questions[key][1].set_result(given)
        if self._on_change is not None:
            self._on_change()

    async def stopped(self) -> None:
        """Wait until the call has ended, asks something, or has left its request."""
        while not self.ended.is_set() and not self.open_questions() and self._instead is None:
            self._wake = anyio.Event()
            await self._wake.wait()

    async def next_stop(self) -> Done | dict[str, Question]:
        """As `stopped`: what it has returned, or asks. Raises what the call raised."""
        await self.stopped()
        if self._instead is not None:
            return self._instead
        if not self.ended.is_set():
            self._rounds += 1
            return self.open_questions()
        if self.error is not None:
            raise self.error
        if self.done is None:
            raise MCPError(types.INVALID_REQUEST, "the call was cancelled")
        return self.done

    def open_questions(self) -> dict[str, Question]:
        return {key: request for key, (request, answered) in self._questions.items() if not answered.done()}

    def _start_round(self, ctx: Context) -> None:
        self._ctx = ctx
        self.round_started_s = time.monotonic()


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
        patience: Patience | None = None,
    ) -> T | types.InputRequiredResult:
        """Run a call until it ends or asks. `owner` may go on with it; of one `principal` there may be several.

        `rounds_before`: how often the client was asked before it began. `patience`: how long this request waits.
        """
        if self._group is None:
            raise RuntimeError("calls can be suspended only while the server runs")
        call = SuspendedCall(ctx, owner, principal, pin, early, rounds_before=rounds_before)
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
        if is_foreign or not await self._is_open(token, mark):
            raise self._lost(travelled, only_reads())
        self._take(token)
        if call is None:
            given = [EarlyAnswer(mark, answer, travelled.record) for answer in answers.values()]
            only = given[0] if len(given) == 1 else None
            return await self.start(ctx, owner, principal, body, pin=pin, early=only, patience=patience)
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

    async def _is_open(self, token: str, mark: str) -> bool:
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
            except BaseException:
                call.cancel()
                raise
        self._suspended[token] = call
        call.timer = asyncio.get_running_loop().call_later(self._kept_s, self._drop, token)
        self._make_room(call.principal)
        state = TravellingState(token, call.mark, self.replica, call.record)
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
