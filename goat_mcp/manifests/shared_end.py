"""What a call of a Python handler is told that ends with its process, which it shares with other calls of the file:
who held the process or was at work in it, and whether this call may have done anything."""

from __future__ import annotations

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.manifests.failure import handler_failed, timed_out
from goat_mcp.manifests.handler_process import CallInProcess, HandlerProcess
from goat_mcp.manifests.tool_document import Export

_HARMLESS = (SideEffect.NONE, SideEffect.READ_ONLY)
_NOT_RUN = "Nothing of this call was run: call it again, and a new process is started."
_MAY_HAVE_RUN = "This call may have done its work, or a part of it: look before you call it again."
_FOR_USERS = "If it stays so, tell the user: what blocks belongs in a plain `def`, which is run in a thread."


def no_answer(call: CallInProcess, export: Export, timeout_s: float) -> ToolError:
    """For a call that was given up after this time."""
    if not call.was_ended or not call.beside:
        return timed_out(export.spec.name, timeout_s)
    others = ", ".join(sorted(set(call.beside)))
    if call.has_begun:
        what = f"{call.tool} did not answer within {timeout_s:.3g} s: it, or {others} beside it, held their process"
    else:
        what = f"{call.tool} did not begin within {timeout_s:.3g} s: {others} held the process of both"
    return ToolError(
        ErrorCode.TIMEOUT,
        f"{what}, which was ended",
        f"{_step(call, export)} {_FOR_USERS}",
        facts={"timed_out": True},
    )


def told_end(end: ToolError, process: HandlerProcess, call: CallInProcess, export: Export, limit: int) -> ToolError:
    """For a call that was cut short as the process ended: `end` says how."""
    calls = process.pipes.calls
    others = ", ".join(sorted({other.tool for other in calls.at_the_end if other is not call}))
    if calls.is_given_up and others:
        what = f"the process of {call.tool} was ended: {others} held it, and did not answer in time"
        return handler_failed(what, f"{_step(call, export)} {_FOR_USERS}", name=end.name, limit=limit)
    if process.pipes.broken_by:
        return end  # what it said of this call may be lost, too
    what = f"{end.message}; at work in it: {others}" if others else end.message
    if not call.has_begun or export.spec.side_effect not in _HARMLESS:
        return handler_failed(what, f"{_step(call, export)} If it stays so, tell the user.", name=end.name, limit=limit)
    return handler_failed(what, end.suggestion, name=end.name, limit=limit) if others else end


def _step(call: CallInProcess, export: Export) -> str:
    if not call.has_begun:
        return _NOT_RUN
    return "Call it again." if export.spec.side_effect in _HARMLESS else _MAY_HAVE_RUN
