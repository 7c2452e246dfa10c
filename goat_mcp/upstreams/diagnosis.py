"""How one upstream stands, put together from what its parts know; and why a tool of one is not there."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.names import SEPARATOR, UPSTREAM_PREFIX, InvalidName, clean_server_name
from goat_mcp.upstreams.cache.offering_cache import OfferingCache
from goat_mcp.upstreams.cache.tool_cache import ToolCache
from goat_mcp.upstreams.calls.calls import UpstreamCalls
from goat_mcp.upstreams.calls.output_check import OutputCheck
from goat_mcp.upstreams.config.entry import UpstreamConfig
from goat_mcp.upstreams.config.launchers import still_starting
from goat_mcp.upstreams.config.upstream_files import UpstreamProblem
from goat_mcp.upstreams.pinning.pins import LAUNCH, UpstreamPins
from goat_mcp.upstreams.status import ReasonCode, UpstreamState, UpstreamStatus
from goat_mcp.upstreams.supervisor import Supervisor

if TYPE_CHECKING:  # loaded where results are made visible
    from goat_mcp.upstreams.calls.visible_results import VisibleResults


def upstream_status(
    config: UpstreamConfig,
    supervisor: Supervisor,
    list_problem: str,
    *,
    tools: ToolCache,
    offerings: OfferingCache,
    pins: UpstreamPins,
    calls: UpstreamCalls,
    output: OutputCheck,
    visible: VisibleResults | None,
) -> UpstreamStatus:
    """As of now. `supervisor` is that of the connection whose lists are on show; `list_problem` is why its tools could
    not be listed, empty if they could.
    """
    connection = supervisor.last_connection
    junk, oversized = connection.junk() if connection is not None else (0, 0)
    trouble = _trouble(config, supervisor, list_problem, tools, offerings, pins)
    offered = offerings.items
    return UpstreamStatus(
        name=config.name,
        server=config.server,
        state=supervisor.state,
        reason_code=trouble[0],
        detail=trouble[1],
        since_s=time.monotonic() - supervisor.since_s,
        next_try_s=supervisor.next_try_s,
        version=connection.version if connection is not None else (supervisor.known_version or ""),
        tool_count=tools.count,
        resource_count=len(offered.resources),
        template_count=len(offered.templates),
        prompt_count=len(offered.prompts),
        rejected=(*tools.rejected, *tools.unwanted, *offerings.rejected),
        quarantined=(*tools.quarantined, *offerings.quarantined),
        waiting_pins=pins.changes(),
        collisions=(*tools.collisions(), *offerings.collisions()),
        shortened_descriptions=tools.shortened,
        mentions=tools.mentions,
        junk_lines=junk,
        oversized_frames=oversized,
        dropped_logs=connection.callers.dropped_logs if connection is not None else 0,
        dropped_notices=connection.dropped_notices if connection is not None else 0,
        unknown_blocks=calls.unknown_blocks,
        escaped_tools=tools.escaped,
        escaped_results=visible.escaped if visible is not None else 0,
        output_mismatches=output.mismatches,
        unchecked_outputs=(*tools.unchecked_outputs, *output.unchecked),
        calls_in_flight=calls.limiter.in_flight,
        calls_waiting=calls.limiter.limiter.waiting(),
        sharing=connection.sharing if connection is not None and not connection.closed.is_set() else None,
        catalog_at_s=tools.listed_at_s(),
        stderr_tail=connection.stderr_text() if connection is not None else "",
        last_failure=supervisor.last_failure,
    )


def _trouble(
    config: UpstreamConfig,
    supervisor: Supervisor,
    list_problem: str,
    tools: ToolCache,
    offerings: OfferingCache,
    pins: UpstreamPins,
) -> tuple[ReasonCode | Literal[""], str]:
    """What is wrong, the connection first."""
    if supervisor.reason_code:
        return supervisor.reason_code, supervisor.detail
    if supervisor.state is UpstreamState.STARTING and not tools.is_known:
        return ReasonCode.STARTING, still_starting(config, supervisor.start_timeout_s)
    if supervisor.refused_because:
        return ReasonCode.AUTH_REQUIRED, supervisor.refused_because
    if list_problem or offerings.problem:
        return ReasonCode.LIST_FAILED, list_problem or offerings.problem
    if tools.cyclic:
        return ReasonCode.GATEWAY_CYCLE, tools.cyclic
    if tools.truncated:
        return ReasonCode.LIST_TRUNCATED, supervisor.detail or tools.truncated
    if offerings.truncated:
        return ReasonCode.LIST_TRUNCATED, offerings.truncated
    waiting = pins.changes()
    if waiting == (LAUNCH,) and config.pin != "strict":
        return ReasonCode.LAUNCH_CHANGED, "it is launched in another way than when it was pinned"
    if waiting:
        return ReasonCode.QUARANTINED, f"{len(waiting)} changed or new definitions wait: {', '.join(waiting[:5])}"
    return "", supervisor.detail


_OF_SOME = frozenset(
    {
        *(ReasonCode.QUARANTINED, ReasonCode.TOOL_DISABLED, ReasonCode.LIST_TRUNCATED, ReasonCode.LAUNCH_CHANGED),
        ReasonCode.STARTING,
    }
)
"""These say something of single tools, or that it is not ready yet; the upstream may be idle and well."""


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
        if rejected := next((each for each in status.rejected if each.name == native and each.kind == "tool"), None):
            return ToolError(
                ErrorCode.TOOL_NOT_IN_CATALOG,
                f"{shown} is rejected ({rejected.reason_code}): {rejected.reason}",
                "Use another tool; the user can see more with `goat-mcp status`.",
                facts={"upstream": status.name, "reason": str(rejected.reason_code)},
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
