"""The calls that one script makes, as calls of whoever runs it: how many at a time, who is asked, what is written down.

A person gets one form at a time, and after a refusal nothing else begins. With what is written down another process
can go on after a question (design/0044).
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import anyio

from goat_mcp.calls.permissions.approval import DECISION, DENY
from goat_mcp.core.context import ToolContext, no_progress, nothing_afterwards
from goat_mcp.core.elicitation import Answer, Form, Reply
from goat_mcp.core.errors import ErrorCode
from goat_mcp.core.result import ToolResult
from goat_mcp.processes.computing.script_journal import AskedCall, CallOutcome, ScriptJournal
from goat_mcp.processes.computing.script_options import CodeOptions
from goat_mcp.processes.computing.script_sandbox import CallFailed

RESULT_CHARS = 1_000_000
"""Of one tool's result inside a script (`output.max_chars` is for what a model reads)."""
AT_A_TIME = 8
"""Calls of one script that run side by side. More of them wait: the limiter would refuse a flood."""
QUIET_WITHIN_S = 2.0
"""So long a question waits for calls that run beside it: what they do would be unknown to another process."""
_PENDING = "\nBegin the new script with this call: what ran before it has been done."

CallTool = Callable[[str, Mapping[str, Any], ToolContext], Awaitable[tuple[ToolResult, bool]]]
"""One call through the pipeline: its result, and whether whoever refused it wants nothing else started."""


class ScriptCalls:
    """Those of one script. `made` is how many it has asked for."""

    def __init__(
        self, call: CallTool, ctx: ToolContext, options: CodeOptions, journal: ScriptJournal, *, may_restart: bool
    ) -> None:
        """`may_restart`: whether another process may go on with the script after a question."""
        self._call = call
        self._ctx = ctx
        self._max_calls = options.max_calls
        self._catches_up_within_s = 2 * options.timeout_s
        """It computes and sleeps for so long at most."""
        self._journal = journal
        self._may_restart = may_restart
        self._slots = asyncio.Semaphore(AT_A_TIME)
        self._asking = asyncio.Lock()
        self._is_stopped = False
        """Whether somebody has refused a call: no other one starts, and nobody is asked about those that wait."""
        self._may_begin = asyncio.Event()
        """Not set while a question is open after which another process may go on. Started again with the answer, only
        the call that asked begins before that."""
        if not journal.asking:
            self._may_begin.set()
        self._running = 0
        self._unbegun = 0
        """Of those that run, the ones that have done nothing yet but ask."""
        self._changed = anyio.Event()
        self.made = 0

    async def make(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """The data of its result. Raises `CallFailed`, with the error's code first."""
        if self.made >= self._max_calls:
            raise CallFailed(f"{ErrorCode.TOO_LARGE}: a script makes {self._max_calls} calls at most (code.max_calls)")
        self.made += 1
        call = self._journal.asked(tool, arguments)
        outcome = self._journal.earlier(call)
        if outcome is None:
            await self._catch_up()
            await self._turn_of(call)  # without a slot: the call that is waited for needs one
            async with self._slots:
                await self._turn_of(call)
                outcome = await self._made(call)
            if self._may_restart:
                outcome = self._journal.note(call, outcome)
        if outcome.failure:
            raise CallFailed(outcome.failure)
        return outcome.data

    async def _turn_of(self, call: AskedCall) -> None:
        while not self._may_begin.is_set() and call.key != self._journal.asking:
            await self._may_begin.wait()

    async def _catch_up(self) -> None:
        with anyio.move_on_after(self._catches_up_within_s) as waited:
            await self._journal.caught_up()
        if waited.cancelled_caught:
            self._is_stopped = True
            raise CallFailed(
                f"{ErrorCode.CANCELLED}: not run: the script was started again after a question, and has not made the "
                "calls again that it made before; look what they have done"
            )

    async def _made(self, call: AskedCall) -> CallOutcome:
        if self._is_stopped:
            why = f"{ErrorCode.CANCELLED}: not run: a call before it was refused, and all that follows"
            return CallOutcome(None, why)
        self._running += 1
        try:
            result, stops = await self._call(call.tool, call.arguments, self._inner(call))
        finally:
            self._running -= 1
            self._tell()
            if call.key == self._journal.asking:
                self._goes_on()  # it was not asked about, this time
        self._is_stopped = self._is_stopped or stops  # one that ran beside it changes nothing of that
        if result.is_error:
            more = _PENDING if result.error_code == ErrorCode.APPROVAL_PENDING else ""
            return CallOutcome(None, f"{result.error_code or ErrorCode.TOOL}: {_message(result)}{more}")
        return CallOutcome(_data(result))

    def _goes_on(self) -> None:
        self._journal.asking = ""
        self._may_begin.set()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    def _inner(self, call: AskedCall) -> ToolContext:
        ctx = self._ctx
        return ctx.changed(
            call_id=secrets.token_hex(8),
            progress=no_progress,
            wants_progress=False,
            ask=partial(self._ask, call),
            # The host has seen the script and not this call, as with an agent's: it cannot have asked about it.
            rights=ctx.rights.in_a_script(),
            overrides={**ctx.overrides, "output.max_chars": RESULT_CHARS},
            started_at_s=time.monotonic(),
            do_afterwards=nothing_afterwards,
            restart=None,
        )

    async def _ask(self, call: AskedCall, form: Form) -> Answer:
        self._unbegun += form.opens_call
        self._tell()
        try:
            async with self._asking:  # a person reads one form at a time
                return Answer(Reply.CANCELLED) if self._is_stopped else await self._asked(call, form)
        finally:
            self._unbegun -= form.opens_call

    async def _asked(self, call: AskedCall, form: Form) -> Answer:
        record = await self._record(call) if form.opens_call and self._may_restart else ""
        try:
            # Without a record the script must not be started again: calls before may have changed something.
            message = f"For a script: {form.message}"
            answer = await self._ctx.ask(replace(form, message=message, opens_call=bool(record), record=record))
            is_refused = answer.reply in (Reply.DECLINED, Reply.CANCELLED) or answer.text(DECISION) == DENY
            if is_refused and any(question.name == DECISION for question in form.questions):
                self._is_stopped = True
        finally:
            self._goes_on()
        return answer

    async def _record(self, call: AskedCall) -> str:
        """All that the script's calls have done, of which none begins until the question is answered; empty if that
        cannot be told."""
        self._may_begin.clear()
        with anyio.move_on_after(QUIET_WITHIN_S):
            while self._running > self._unbegun:
                await self._changed.wait()
        record = self._journal.record(call) if self._running == self._unbegun else ""
        if not record:
            self._may_begin.set()
        return record


def _data(result: ToolResult) -> Any:
    structured = result.wire().get("structuredContent")
    if structured is not None:
        return structured
    text = result.text
    if text.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return text


def _message(result: ToolResult) -> str:
    return result.text.removesuffix(f"\n[{result.error_code}]")
