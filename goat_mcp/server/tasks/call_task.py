"""A client's call as the work of a task: it goes on without its request, and asks its client through the task."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Literal

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError

from goat_mcp.commands.tasks.task import RequestError, TaskOutcome, TaskStatus
from goat_mcp.core.errors import ToolError, UpstreamError
from goat_mcp.core.result import ToolResult, error_result
from goat_mcp.processes.output_capture import OutputPart
from goat_mcp.server.client_channel import Question, RawAnswer
from goat_mcp.server.error_responses import relayed_error
from goat_mcp.server.suspended_call import SuspendedCall

_REASON_CHARS = 300


class CallTask:
    """Of a call that has taken too long for its request. `title` is the tool that is called."""

    kind: Literal["request"] = "request"
    output_file = None

    def __init__(self, call: SuspendedCall, title: str) -> None:
        self.title = title
        self.changed_at_s = time.time()
        """When it last asked, was answered, or ended."""
        self._call = call
        self._started_s = call.round_started_s
        self._ended_after_s: float | None = None
        call.detach(self._note_change)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started_s if self._ended_after_s is None else self._ended_after_s

    @property
    def progress(self) -> str:
        """What it last said of its progress."""
        return self._call.last_progress

    @property
    def questions(self) -> Mapping[str, Question]:
        """Those that its client has not answered."""
        return {} if self._call.ended.is_set() else self._call.open_questions()

    @property
    def outcome(self) -> TaskOutcome | None:
        call = self._call
        if not call.ended.is_set():
            return None
        if call.error is not None:
            return _failed(call.error)
        if call.done is None:
            return TaskOutcome(TaskStatus.STOPPED)
        result = call.done.result
        if not isinstance(result, ToolResult):
            return TaskOutcome(TaskStatus.FAILED, error=_INTERNAL)
        status = TaskStatus.FAILED if result.is_error else TaskStatus.COMPLETED
        return TaskOutcome(status, reason=result.text[:_REASON_CHARS] if result.is_error else "", result=result)

    def output(self, max_chars: int, start: int) -> OutputPart:
        outcome = self.outcome
        if outcome is None:
            return OutputPart(self.progress[:max_chars], 0)
        result = outcome.result
        text = outcome.reason if result is None else result.text
        return OutputPart(text[:max_chars], len(text), len(text) > max_chars)

    def answer(self, answers: Mapping[str, Any]) -> None:
        """Answers to its questions; what answers none is left aside. Whoever asked checks what they hold."""
        self._call.answer(
            {key: RawAnswer.model_validate(given) for key, given in answers.items() if isinstance(given, Mapping)}
        )

    async def wait(self, timeout_s: float | None) -> bool:
        with anyio.move_on_after(timeout_s):
            await self._call.ended.wait()
        return self._call.ended.is_set()

    async def stop(self) -> None:
        self._call.cancel()
        await self._call.ended.wait()

    def _note_change(self) -> None:
        self.changed_at_s = time.time()
        if self._call.ended.is_set() and self._ended_after_s is None:
            self._ended_after_s = self.seconds


_INTERNAL = RequestError(types.INTERNAL_ERROR, "the call failed unexpectedly")


def _failed(error: Exception) -> TaskOutcome:
    if isinstance(error, ToolError):  # e.g. the shared state is out of reach
        return TaskOutcome(TaskStatus.FAILED, reason=error.message[:_REASON_CHARS], result=error_result(error))
    if isinstance(error, UpstreamError):
        error = relayed_error(error)
    if isinstance(error, MCPError):
        refusal = RequestError(error.error.code, error.error.message, error.error.data)
        return TaskOutcome(TaskStatus.FAILED, reason=refusal.message[:_REASON_CHARS], error=refusal)
    return TaskOutcome(TaskStatus.FAILED, error=_INTERNAL)
