"""A batch of calls from one model turn: the order of admission, and what stops the rest.

The pipeline runs the calls. Source: Goat, "Tool Execution Flow", steps 1 and 3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.result import ToolResult

INTERRUPTED, CANCELLED = "interrupted", "cancelled"


class BatchOutcome(NamedTuple):
    """One result for each request, in request order. `stopped_by` is `interrupted` or `cancelled`, else None."""

    results: list[ToolResult]
    stopped_by: str | None = None

    @property
    def interrupted(self) -> bool:
        """Whether a denial stopped the batch: the caller should hand over to the person. Source: Goat, step 3."""
        return self.stopped_by == INTERRUPTED


class Turn:
    """One call of a batch. `stop` ends a call that waits; None for a single call."""

    __slots__ = ("_on_admitted", "batch", "is_running", "stop")

    def __init__(
        self,
        batch: Batch,
        *,
        on_admitted: Callable[[], None] | None = None,
        stop: Callable[[], None] | None = None,
    ) -> None:
        self.batch = batch
        self.is_running = False
        self.stop = stop
        self._on_admitted = on_admitted

    def admitted(self) -> None:
        """The call may run, so the next one may be admitted. Repeating it changes nothing."""
        on_admitted, self._on_admitted = self._on_admitted, None
        if on_admitted is not None:
            on_admitted()

    def begin(self) -> None:
        """The tool starts now. Raises `ToolError(CANCELLED)` in a batch that was stopped meanwhile."""
        if self.batch.stopped_by is not None:
            raise self.batch.not_run()
        self.is_running = True


class Batch:
    """Calls are admitted one after the other, in request order, and run in parallel.

    So a person is asked one thing at a time, and if a call is refused, none after it has started.
    """

    __slots__ = ("_reason", "stopped_by", "turns")

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.stopped_by: str | None = None
        self._reason = ""

    def interrupt(self, denied: Turn, denial: ToolError) -> None:
        """Start nothing new, because of this denial. Calls that run may finish: their effects exist."""
        self._stop(INTERRUPTED, denial.message)
        for turn in self.turns:
            if turn is not denied and not turn.is_running and turn.stop is not None:
                turn.stop()

    def cancel(self) -> None:
        """End everything, running calls too."""
        self._stop(CANCELLED, "")
        for turn in self.turns:
            if turn.stop is not None:
                turn.stop()

    def not_run(self) -> ToolError:
        """The answer to a call that was never started."""
        if self.stopped_by == INTERRUPTED:
            return ToolError(
                ErrorCode.CANCELLED,
                f"not run: the batch was interrupted ({self._reason})",
                "Ask the user how to go on.",
            )
        return ToolError(ErrorCode.CANCELLED, "operation cancelled", "Nothing of this call was done.")

    def ended(self, turn: Turn) -> ToolError:
        """The answer to a call that `stop` ended."""
        if not turn.is_running:
            return self.not_run()
        return ToolError(
            ErrorCode.CANCELLED,
            "operation cancelled while it ran",
            "What it had done by then stays; look before you repeat it.",
        )

    def _stop(self, by: str, reason: str) -> None:
        # A cancelled batch stays cancelled; an interrupted one may still be cancelled.
        if self.stopped_by != CANCELLED:
            self.stopped_by, self._reason = by, reason
