"""What became of what was decided: the same words on the command line and on the page."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from goat_mcp.calls.approvals.record import Approval, Kind, Status
from goat_mcp.calls.audit.call_record import FILE_NAME
from goat_mcp.calls.audit.recorded_calls import CallEnd, UnreadableRecord, ends_of
from goat_mcp.processes.process_table import is_alive
from goat_mcp.state.directory import StateDirectory

UNKNOWN_END = "began and no end is recorded: it may have taken effect"


def results_of(state: StateDirectory, approvals: Sequence[Approval]) -> dict[str, str]:
    """By the record's id, a sentence without a full stop about each that was approved. Blocking."""
    approved = [one for one in approvals if one.status is Status.APPROVED]
    ends: dict[str, CallEnd] = {}
    with suppress(UnreadableRecord):  # then no end is known
        ends = ends_of(state.path / FILE_NAME, [one.used_by for one in approved if one.used_by])
    return {one.id: _result(one, ends.get(one.used_by)) for one in approved}


def _result(approval: Approval, end: CallEnd | None) -> str:
    is_call = approval.request.kind is Kind.CALL
    if end is not None:
        took = f", {end.duration_ms / 1000:.1f} s" if end.duration_ms is not None else ""
        return f"the call failed with {end.error_code}{took}" if end.error_code else f"the call ran{took}"
    if is_call and not approval.used_by:
        if approval.call_id:
            return "the call has not run yet"
        return "not used yet: it runs when the client sends the call again"
    if not is_call and approval.used_at_s is not None:
        return "done"
    if is_alive(approval.process):
        return "the call runs" if is_call else "is being done"
    return f"the call {UNKNOWN_END}" if is_call else UNKNOWN_END
