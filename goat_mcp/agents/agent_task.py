"""One run of an agent as the work of a task: its activity, its result, and how it is stopped.

The task shows progress while it runs and the final answer after that, never the transcript.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal

import anyio

from goat_mcp.agents.engine import Activity, AgentOutcome, AgentState, OnEvent
from goat_mcp.commands.tasks import TaskOutcome, TaskStatus
from goat_mcp.core.context import ToolContext
from goat_mcp.core.elicitation import Answer, Ask, Form, Reply
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.heartbeat import HEARTBEAT_S
from goat_mcp.processes.output_capture import CreateFile, OutputCapture, OutputPart

STOP_WAIT_S = 1.8
"""A cancelled call ends within 2 s; what takes longer ends by itself."""
_REASON_CHARS = 300

Body = Callable[[OnEvent], Awaitable[AgentOutcome]]


class AgentTask:
    """Runs in an asyncio task of its own. A call may attend it, or leave it running.

    `outlives_calls` is False if it needs its call to stay open: it is then attended until it ends.
    """

    kind: Literal["agent"] = "agent"

    def __init__(self, agent_id: str, title: str, create_file: CreateFile, *, outlives_calls: bool = True) -> None:
        self.agent_id = agent_id
        self.title = title
        self.outlives_calls = outlives_calls
        self.state = AgentState(turns=0, text="")
        self.error: ToolError | None = None
        self.notices: tuple[str, ...] = ()
        self.is_attended = False
        self.can_be_resumed = False
        self._capture = OutputCapture(create_file)
        self._doing = "starting"
        self._started_s = time.monotonic()
        self._ended_after_s: float | None = None
        self._result_from = 0
        self._open_questions = 0
        self._was_stopped = False
        self._scope = anyio.CancelScope()
        self._ended = asyncio.Event()
        self._runner: asyncio.Task[None] | None = None
        self._capture.keep_file()

    @property
    def output_file(self) -> Path | None:
        return self._capture.path

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started_s if self._ended_after_s is None else self._ended_after_s

    @property
    def outcome(self) -> TaskOutcome | None:
        if not self._ended.is_set():
            return None
        if self._was_stopped:
            return TaskOutcome(TaskStatus.STOPPED, output_from=self._result_from)
        if self.error is not None:
            return TaskOutcome(TaskStatus.FAILED, None, self.error.message[:_REASON_CHARS], self._result_from)
        return TaskOutcome(TaskStatus.COMPLETED, output_from=self._result_from)

    @property
    def tokens(self) -> int | None:
        """Read and written, as far as they were counted."""
        counted = [count for count in (self.state.input_tokens, self.state.output_tokens) if count is not None]
        return sum(counted) if counted else None

    def output(self, max_chars: int, start: int) -> OutputPart:
        """Its activity while it runs; then its final answer, or why it failed."""
        is_over = self._ended.is_set()
        return self._capture.shown(max_chars, max(start, self._result_from) if is_over else start, complete=is_over)

    def start(self, body: Body, on_bug: Callable[[Exception], None]) -> None:
        """Run `body`, which leaves nothing behind however it ends. `on_bug` gets unexpected exceptions."""
        self._runner = asyncio.create_task(self._run(body, on_bug))

    def elicit_while_attended(self, ask: Ask) -> Ask:
        """Asks the user of the call, for as long as the call attends the agent."""

        async def ask_if_attended(form: Form) -> Answer:
            if not self.is_attended:
                return Answer(Reply.UNAVAILABLE)
            self._open_questions += 1
            try:
                # The agent has done something before: its call cannot be made again with the answer.
                return await ask(replace(form, opens_call=False))
            finally:
                self._open_questions -= 1

        return ask_if_attended

    async def attend(self, ctx: ToolContext) -> bool:
        """Wait for the end in a call, with progress. Returns False if the call has to answer before that.

        If the call is cancelled, so is the agent.
        """
        self.is_attended = True
        try:
            while not await self.wait(self._next_look_s(ctx)):
                if ctx.wants_progress:
                    await ctx.progress(self.seconds, None, self._doing)
                if self.outlives_calls and not self._open_questions and ctx.wait_left_s() <= 0:
                    return False
            return True
        except BaseException:
            with anyio.move_on_after(STOP_WAIT_S, shield=True):
                await self.stop()
            raise
        finally:
            self.is_attended = False

    def _next_look_s(self, ctx: ToolContext) -> float:
        if not self.outlives_calls or self._open_questions:
            return HEARTBEAT_S
        return min(HEARTBEAT_S, ctx.wait_left_s())

    async def wait(self, timeout_s: float | None) -> bool:
        with anyio.move_on_after(timeout_s):
            await self._ended.wait()
        return self._ended.is_set()

    async def stop(self) -> None:
        """Stop it and the tools it runs; returns when it has ended."""
        if not self._ended.is_set():
            self._was_stopped = True
            self._scope.cancel()
            await self._ended.wait()

    def discard_output(self) -> None:
        """Remove the output file of a run without a result."""
        self._capture.close()
        if self.output_file is not None:
            with suppress(OSError):
                self.output_file.unlink()

    async def _run(self, body: Body, on_bug: Callable[[Exception], None]) -> None:
        try:
            with self._scope:
                outcome = await body(self._on_event)
                self.state, self.notices = outcome.state, (*self.notices, *outcome.notices)
                self._was_stopped = False  # it was faster
        except ToolError as error:
            self.error = error
        except asyncio.CancelledError:  # the event loop ends
            self._was_stopped = True
            raise
        except Exception as bug:
            on_bug(bug)
            self.error = ToolError(
                ErrorCode.INTERNAL,
                f"agent {self.agent_id} failed unexpectedly",
                "The server's log holds the details under this id; try another way.",
            )
        finally:
            self._put_result()
            self._ended_after_s = self.seconds
            self._ended.set()

    def _put_result(self) -> None:
        if self._was_stopped:
            self.error = None
        lines = [self.state.text, *(f"[{notice}]" for notice in self.notices)]
        if self.error is not None:
            lines += [self.error.message, self.error.suggestion, f"[{self.error.code}]"]
        self._capture.add(b"\n")
        self._result_from = self._capture.total
        self._capture.add("\n".join(line for line in lines if line).encode("utf-8", "replace") + b"\n")
        self._capture.close()
        self.state = replace(self.state, messages=())  # they are stored; an ended task is kept for an hour

    def _on_event(self, event: Activity | AgentState) -> None:
        if isinstance(event, AgentState):
            self.state = event
            return
        self._doing = f"turn {event.turn}: {event.what}"
        self._capture.add(f"[{self.seconds:.1f} s] {self._doing}\n".encode("utf-8", "replace"))
