"""What a caller is told of a process of handlers that is not there: it ended, or its file could not be loaded.

Whose doing that was, among the calls that share it, is `shared_end`'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.manifests.entry import PythonEntry
from goat_mcp.manifests.failure import handler_failed
from goat_mcp.manifests.handler_process import MAX_ANSWER_BYTES, CallInProcess, HandlerProcess


def told_death(process: HandlerProcess, resource: str, limit: int, *, call: CallInProcess | None) -> ToolError:
    """It ended, or broke the pipe that answers come by. `call` is the one that is told; None: as it was loaded."""
    if process.pipes.broken_by == "size":
        what = f"{resource} answered with more than {MAX_ANSWER_BYTES} bytes"
        return handler_failed(f"{what}; it was ended", "Ask for less.", name="AnswerTooLarge")
    if process.pipes.broken_by == "protocol":
        return handler_failed(
            f"something in the process of {resource} wrote to the pipe of its answers; it was ended",
            "Call it again: it is started anew. If it stays so, tell the user: a handler, or what it uses, writes "
            "to a file descriptor that it has not opened.",
            name="AnswerPipeBroken",
        )
    last = process.pipes.last_words(call)
    code = process.child.exit_code
    if code is None:
        return handler_failed(
            f"the process of {resource} closed the pipe of its answers during the call: {last}",
            "Call it again: it is started anew. If it stays so, tell the user: a handler, or what it uses, closes "
            "a file descriptor that it has not opened.",
            name="AnswerPipeClosed",
            limit=limit,
        )
    ended = f"exit code {code}" if code >= 0 else f"signal {-code}"
    return handler_failed(
        f"the process of {resource} ended during the call ({ended}): {last}",
        "Call it again: it is started anew. If it stays so, tell the user.",
        name="ProcessEnded",
        limit=limit,
    )


def told_broken(entry: PythonEntry, error: Mapping[str, Any], limit: int) -> ToolError:
    """Its file failed as it was imported."""
    return handler_failed(
        f"{entry.file or entry.module} cannot be loaded: {error.get('name')}: {error.get('message')}",
        "Tell the user; `goat-mcp manifest check` shows the whole error.",
        name=str(error.get("name", "")),
        limit=limit,
    )


def told_slow(entry: PythonEntry, when: str, step: str) -> ToolError:
    """Its file was not imported in time."""
    return ToolError(
        ErrorCode.TIMEOUT,
        f"{entry.file or entry.module} was not loaded {when}",
        f"{step} What takes long there belongs inside the handlers, not where the file is imported.",
        facts={"timed_out": True},
    )
