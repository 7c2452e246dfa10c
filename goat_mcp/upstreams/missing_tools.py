"""Why a tool that somebody calls by name is not there, where its upstream is the reason. Loaded by such a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.names import SEPARATOR, UPSTREAM_PREFIX, InvalidName, clean_server_name
from goat_mcp.upstreams.config.upstream_files import UpstreamProblem
from goat_mcp.upstreams.reason_code import ReasonCode
from goat_mcp.upstreams.status import UpstreamState, UpstreamStatus

_OF_SOME = frozenset(
    {ReasonCode.QUARANTINED, ReasonCode.TOOL_DISABLED, ReasonCode.LIST_TRUNCATED, ReasonCode.LAUNCH_CHANGED}
)
"""These say something of single tools; the upstream may be idle and well."""


def why_missing(
    name: str,
    statuses: Sequence[UpstreamStatus],
    prefixes: Mapping[str, str],
    problems: Sequence[UpstreamProblem],
) -> ToolError | None:
    """`prefixes` has, by an upstream's name, what its tools' names begin with. None where it is nobody's."""
    shown = name[:200]
    for status in statuses:
        prefix = prefixes.get(status.name, "")
        if not prefix or not name.startswith(prefix):
            continue
        native = name.removeprefix(prefix)
        if withheld := next((each for each in status.withheld if each.name == native and each.kind == "tool"), None):
            return ToolError(
                ErrorCode.TOOL_NOT_IN_CATALOG,
                f"{shown} is withheld ({withheld.reason_code}): {withheld.reason}",
                "Use another tool; the user can see more with `goat-mcp status`.",
                facts={"upstream": status.name, "reason": str(withheld.reason_code)},
            )
        if status.reason_code and status.reason_code not in _OF_SOME and status.state is not UpstreamState.READY:
            return ToolError(
                ErrorCode.UPSTREAM_DOWN,
                f"{shown} cannot be called: upstream {status.name} is down ({status.reason_code}): {status.detail}",
                "Tell the user; the call may work once that server runs again.",
                facts={"upstream": status.name, "reason": str(status.reason_code)},
            )
        if status.state is UpstreamState.STARTING and status.catalog_at_s is None:
            return ToolError(
                ErrorCode.UPSTREAM_DOWN,
                f"{shown} cannot be called yet: upstream {status.name} is still starting ({ReasonCode.STARTING}), and "
                "what tools it has is not known",
                "Call it again in a moment.",
                facts={"upstream": status.name, "reason": str(ReasonCode.STARTING)},
            )
    if any(prefix and name.startswith(prefix) for prefix in prefixes.values()):
        return None
    for problem in problems:
        if problem.is_fatal and name.startswith(_qualified_prefix(problem.name)):
            return ToolError(
                ErrorCode.UPSTREAM_DOWN,
                f"{shown} cannot be called: upstream {problem.name} is not in use ({problem.reason_code}): "
                f"{problem.message}",
                f"Tell the user; its entry is in {problem.file}." if problem.file else "Tell the user.",
                facts={"upstream": problem.name, "reason": str(problem.reason_code)},
            )
    return None


def _qualified_prefix(key: str) -> str:
    """What the names of its tools would begin with; something no name begins with where the key itself is broken."""
    try:
        return f"{UPSTREAM_PREFIX}{clean_server_name(key)}{SEPARATOR}"
    except InvalidName:
        return " "
