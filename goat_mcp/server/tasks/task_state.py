"""A background task as the extension shows it: `Task` and `DetailedTask` (SEP-2663), as they travel."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import mcp_types as types

from goat_mcp.commands.tasks.records import KEEP_ENDED_S
from goat_mcp.commands.tasks.task import RequestError, Task, TaskOutcome, TaskStatus
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.result import ToolResult, error_result, text_result
from goat_mcp.server.tasks.call_task import CallTask

POLL_INTERVAL_MS = 1000
PAYLOAD = frozenset({"result", "error", "inputRequests"})
"""What the answer to the call that made the task does not hold."""
TERMINAL = frozenset({"completed", "failed", "cancelled"})


def task_state(task: Task, wire_id: str, result: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The state of a task now. `result` is that of one that has brought one, as it travels."""
    outcome = task.work.outcome
    seconds = task.work.seconds
    state: dict[str, Any] = {
        "taskId": wire_id,
        **_status(task, outcome, result),
        "createdAt": _timestamp(task.started_at_s),
        "lastUpdatedAt": _timestamp(_changed_at_s(task, outcome)),
        # From its creation, so it grows while the task runs: an ended one is kept that long.
        "ttlMs": math.ceil((seconds + KEEP_ENDED_S) * 1000),
        "pollIntervalMs": POLL_INTERVAL_MS,
    }
    if message := _message(task, outcome):
        state["statusMessage"] = message
    return state


def _status(task: Task, outcome: TaskOutcome | None, result: Mapping[str, Any] | None) -> dict[str, Any]:
    if outcome is None:
        if isinstance(task.work, CallTask) and (questions := task.work.questions):
            asked = {
                key: one.model_dump(by_alias=True, mode="json", exclude_none=True) for key, one in questions.items()
            }
            return {"status": "input_required", "inputRequests": asked}
        return {"status": "working"}
    if outcome.status is TaskStatus.STOPPED:
        return {"status": "cancelled"}
    if (refusal := _refusal(outcome)) is not None:
        error: dict[str, Any] = {"code": refusal.code, "message": refusal.message}
        return {"status": "failed", "error": error if refusal.data is None else {**error, "data": refusal.data}}
    return {"status": "completed", "result": result}


def _refusal(outcome: TaskOutcome) -> RequestError | None:
    if outcome.status is TaskStatus.ORPHANED:
        return RequestError(
            types.INTERNAL_ERROR,
            f"{outcome.reason or 'the server that ran it was ended'}; look at what it did before you call again",
            {"reason": "orphaned", "effects": "possible"},
        )
    return outcome.error


def brings_result(outcome: TaskOutcome | None) -> bool:
    """Whether a task has ended, and neither by a stop nor by an error of the protocol."""
    return outcome is not None and outcome.status is not TaskStatus.STOPPED and _refusal(outcome) is None


def result_of_output(task: Task, outcome: TaskOutcome, max_chars: int) -> ToolResult:
    """What the call would have returned, of work that has an output only: a command, an agent."""
    work = task.work
    part = work.output(max_chars, 0)
    path = work.output_file
    facts = {
        "task_id": task.id,
        "task_type": work.kind,
        "status": str(outcome.status),
        "exit_code": outcome.exit_code,
        "output_file": None if path is None else str(path),
        "truncated": part.truncated,
    }
    if outcome.status is TaskStatus.COMPLETED:
        return text_result(part.text or "(no output)", facts=facts)
    message = outcome.reason or f"Exit code {outcome.exit_code}"
    code = ErrorCode.EXIT if outcome.exit_code is not None else ErrorCode.TOOL
    return error_result(ToolError(code, message, facts=facts, output=part.text or "(no output)"))


def _changed_at_s(task: Task, outcome: TaskOutcome | None) -> float:
    if outcome is not None:
        return task.ended_at_s or task.started_at_s + task.work.seconds
    return task.work.changed_at_s if isinstance(task.work, CallTask) else task.started_at_s


def _message(task: Task, outcome: TaskOutcome | None) -> str:
    if outcome is not None:
        return outcome.reason
    return task.work.progress if isinstance(task.work, CallTask) else ""


def _timestamp(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def with_times(state: dict[str, Any]) -> dict[str, Any]:
    """Of an upstream's task: the times that it owes us, if it leaves them out."""
    now = _timestamp(time.time())
    return {"createdAt": now, "lastUpdatedAt": now, **state}


def without_payload(state: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in state.items() if key not in PAYLOAD}
