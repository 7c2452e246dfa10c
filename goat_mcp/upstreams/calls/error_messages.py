"""What whoever asked an upstream for something is told of a fault between us and it. Loaded by the first one."""

from __future__ import annotations

from goat_mcp.core.errors import ErrorCode, ToolError, cut_middle
from goat_mcp.upstreams.config.entry import UpstreamConfig
from goat_mcp.upstreams.faults import Fault, FaultKind, LoginWanted

_DETAIL_CHARS = 300


def error_message(config: UpstreamConfig, fault: Fault, *, is_call: bool) -> ToolError:
    """The error for a fault of this upstream. A call may have taken effect; a read or the like leaves nothing."""
    name, detail = config.name, cut_middle(fault.detail, _DETAIL_CHARS)
    facts = {"upstream": name, "reason": str(fault.kind)}
    not_run = "; the call did not run" if is_call else ""
    if fault.kind is FaultKind.AUTH_REQUIRED:
        message = f"upstream {name} refused our credentials ({detail}){not_run}"
        if fault.wanted_scopes is not None:
            return LoginWanted(message, config.login_step, facts=facts, scopes=fault.wanted_scopes)
        return ToolError(ErrorCode.AUTH, message, config.login_step, facts=facts)
    if is_call and fault.kind in (FaultKind.UNREACHABLE, FaultKind.SESSION_LOST):
        message = f"upstream {name} cannot be reached ({detail}){not_run}"
        return ToolError(ErrorCode.UPSTREAM_DOWN, message, "Call again later.", facts=facts)
    if fault.kind is FaultKind.MALFORMED:
        did, other_way = (
            ("ran the call", "check the outcome another way")
            if is_call
            else ("answered", "use another way to the same data")
        )
        return ToolError(
            ErrorCode.UPSTREAM, f"upstream {name} {did}, but {detail}", f"Ask it for less, or {other_way}.", facts=facts
        )
    if fault.detail == "HTTP 429":
        return ToolError(
            ErrorCode.RATE, f"upstream {name} limits our rate (HTTP 429)", "Call again later.", facts=facts
        )
    if not is_call:
        message = f"upstream {name} cannot be reached: {detail}"
        return ToolError(ErrorCode.UPSTREAM, message, "Call again later.", facts=facts)
    return ToolError(
        ErrorCode.OUTCOME_UNKNOWN,
        f"upstream {name} was lost during the call ({detail}); the call may have taken effect",
        "Check its outcome before calling again.",
        facts={**facts, "outcome": "unknown"},
    )
