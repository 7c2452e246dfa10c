"""One call that can wait for a 2026-07-28 client: between its requests the client has a question, and no stream."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import anyio
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
from goat_mcp.server.travelling_state import EarlyAnswer, Opening

MAX_ROUNDS = 10
"""Clients stop after ten rounds of questions in one call, the one that may have asked for their roots included."""

QUESTION_KEPT_S = 3600.0
"""How long a call whose request is answered waits for the answer to a question of its own."""

T = TypeVar("T")
Body = Callable[["SuspendedCall"], Awaitable[T]]
Claim = Callable[[], Awaitable[bool]]
Pin = Callable[[], str]
"""What stands for what a call would run, as that is now."""


def no_pin() -> str:
    return ""


@dataclass(frozen=True)
class Done:
    """What a call has returned."""

    result: Any


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
        record: str = "",
    ) -> None:
        """`record`: what it wrote down, if it is started again."""
        self.owner = owner
        self.principal = principal
        self.mark = ""
        """Of the question it waits for, if the call may be started again with the answer."""
        self.record = ""
        """What it has then to go on from."""
        self.record_before = record
        self.closed: set[str] = set()
        """Tokens by which no other process can start it any more: their questions were decided here, in another way."""
        self._is_closed = False
        self._token = ""
        self._claim: Claim | None = None
        self._pin = pin
        self._early = early
        self.round_started_s = 0.0
        self.timer: asyncio.TimerHandle | None = None
        self._ctx = ctx
        self._scope = anyio.CancelScope()
        self._questions: dict[str, tuple[Question, asyncio.Future[Any]]] = {}
        self._wake = anyio.Event()
        self._questions_asked = 0
        self.rounds = rounds_before
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

    async def ask(self, request: Question, answer: type[AnswerT], opening: Opening | None = None) -> AnswerT:
        self._is_closed = False
        self.mark = self.record = ""
        if opening is not None and (opening.record or not self._questions_asked):
            self.mark = self._mark_of(request, opening.subject)
            self.record = opening.record or self.record_before
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
        if self.rounds >= MAX_ROUNDS:
            raise AskedEnough(MAX_ROUNDS)

    def _mark_of(self, request: Question, subject: str) -> str:
        """The same for the same question about what would run the same, to the same owner; no other."""
        text = f"{self.owner}\0{self._pin()}\0{subject}\0{request.model_dump_json()}"
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

    async def close_question(self) -> bool:
        """Let no other process start this call with an answer from now on. False if one has done it already."""
        self._is_closed = True
        if self._claim is None:
            return True
        claim, self._claim = self._claim, None
        self.closed.add(self._token)
        return await claim()

    async def may_be_started_elsewhere(self, token: str, claim: Claim) -> None:
        """Whoever gets True from `claim` has the call."""
        self._token, self._claim = token, claim
        if self._is_closed:  # it was decided meanwhile
            await self.close_question()

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
            self.rounds += 1
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
        self._claim = None  # whoever resumes it has it
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
            self.rounds += 1
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
