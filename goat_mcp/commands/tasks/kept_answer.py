"""The answer of a call that became a task, as JSON: what a record keeps of it beside the task's output."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from goat_mcp.commands.tasks.task import RequestError, TaskOutcome
from goat_mcp.core.result import ToolResult, UpstreamTask, text_block

MAX_KEPT_CHARS = 2_000_000
"""Of one answer. A larger one is known to the process that ran the call only."""


def kept_answer(outcome: TaskOutcome | None) -> dict[str, Any] | None:
    """What `restored` takes; None if there is nothing beside the output."""
    if outcome is None or (outcome.result is None and outcome.error is None):
        return None
    if outcome.error is not None:
        return {"error": asdict(outcome.error)}
    kept = {"result": asdict(outcome.result)} if outcome.result is not None else {}
    if len(text := json.dumps(kept, default=str)) > MAX_KEPT_CHARS:
        note = f"[the result had {len(text)} characters, too many to be kept; the server that ran the call has ended]"
        is_error = outcome.result is not None and outcome.result.is_error
        return {"result": asdict(ToolResult(content=(text_block(note),), is_error=is_error))}
    return json.loads(text)


def restored(answer: Mapping[str, Any] | None) -> tuple[ToolResult | None, RequestError | None]:
    """Of a record, perhaps of another version: None for what cannot be read."""
    try:
        if answer and "error" in answer:
            return None, RequestError(**answer["error"])
        if answer and "result" in answer:
            members: dict[str, Any] = dict(answer["result"])
            members["content"] = tuple(members["content"])
            if members.get("upstream_task"):
                members["upstream_task"] = UpstreamTask(**members["upstream_task"])
            return ToolResult(**members), None
    except (TypeError, KeyError):
        pass
    return None, None
