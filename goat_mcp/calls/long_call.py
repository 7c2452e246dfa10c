"""A call that takes long, as the work of a background task: what it has reported, and its result."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import anyio

from goat_mcp.calls.concurrency_limiter import CallProgress, Permit
from goat_mcp.commands.tasks.task import RequestError, TaskOutcome, TaskStatus
from goat_mcp.core.errors import ErrorCode, UpstreamError
from goat_mcp.core.result import ToolResult
from goat_mcp.processes.output_capture import OutputPart

MAX_REPORTS = 1000
"""Reports of progress that are kept; the oldest go."""
_REASON_CHARS = 300
_STOPPED = "the call was cancelled; it may have taken effect"


class LongCall:
    """A `TaskWork`. Stopping it cancels the call."""

    kind: Literal["call"] = "call"
    output_file: Path | None = None

    def __init__(self, permit: Permit) -> None:
        self.title = permit.tool
        self._cancel: Callable[[], None] | None = permit.cancel
        self._started_s = permit.ctx.started_at_s
        self._ended_after_s: float | None = None
        self._reports: deque[tuple[int, str]] = deque(maxlen=MAX_REPORTS)
        """Each with the byte at which it ends."""
        self._bytes = 0
        self._was_stopped = False
        self._outcome: TaskOutcome | None = None
        self._ended = anyio.Event()
        if permit.progress is not None:
            self._note(permit.progress)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started_s if self._ended_after_s is None else self._ended_after_s

    @property
    def outcome(self) -> TaskOutcome | None:
        return self._outcome

    async def heard(
        self,
        done: float,
        total: float | None = None,
        message: str | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        """Progress of the call. Its `meta` has nobody to read it."""
        self._note(CallProgress(done, total, message))

    def _note(self, progress: CallProgress) -> None:
        of = "" if progress.total is None else f" of {progress.total:g}"
        line = f"[{self.seconds:.1f} s] {progress.done:g}{of}{': ' if progress.message else ''}{progress.message or ''}"
        self._bytes += len(line.encode("utf-8", "replace")) + 1
        self._reports.append((self._bytes, line))

    def output(self, max_chars: int, start: int) -> OutputPart:
        """The text of its result; while it runs what it has reported."""
        if self._outcome is not None and self._outcome.result is not None:
            text = self._outcome.result.text
        else:
            text = "\n".join(line for end, line in self._reports if end > start)
        is_cut = len(text) > max_chars
        return OutputPart(text[-max_chars:] if is_cut else text, self._bytes, is_cut)

    def end(self, result: ToolResult | None, refusal: UpstreamError | None) -> None:
        """It has neither if it was cancelled from outside."""
        self._ended_after_s = self.seconds
        self._cancel = None
        if refusal is not None:
            error = RequestError(refusal.code, refusal.message, refusal.data)
            reason = f"{refusal.message} (JSON-RPC {refusal.code})"[:_REASON_CHARS]
            self._outcome = TaskOutcome(TaskStatus.FAILED, reason=reason, error=error)
        elif result is None or (self._was_stopped and result.error_code == ErrorCode.CANCELLED):
            self._outcome = TaskOutcome(TaskStatus.STOPPED, reason=_STOPPED)
        else:
            status = TaskStatus.FAILED if result.is_error else TaskStatus.COMPLETED
            self._outcome = TaskOutcome(status, result=result)
        self._ended.set()

    def withdraw(self) -> None:
        """It becomes no task."""
        if self._outcome is None:
            self._cancel = None
            self._outcome = TaskOutcome(TaskStatus.STOPPED)
            self._ended.set()

    async def wait(self, timeout_s: float | None) -> bool:
        with anyio.move_on_after(timeout_s):
            await self._ended.wait()
        return self._ended.is_set()

    async def stop(self) -> None:
        """Cancel the call; returns when it has ended."""
        if self._cancel is not None:
            self._was_stopped = True
            self._cancel()
            await self._ended.wait()
