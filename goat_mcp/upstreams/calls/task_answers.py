"""An upstream's task (SEP-2663), as it answers a call and as `tasks/get` brings it, held to what it may say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from goat_mcp.core.errors import ErrorCode, ToolError, UpstreamError
from goat_mcp.core.result import ToolResult, UpstreamTask, text_block
from goat_mcp.files.documents.visible_text import make_visible
from goat_mcp.upstreams.config.entry import UpstreamConfig
from goat_mcp.upstreams.listing.proxy_tool import UpstreamSpec
from goat_mcp.upstreams.pinning.launch_fingerprint import launch_fingerprint

EXTENSION = "io.modelcontextprotocol/tasks"
WORKING, INPUT_REQUIRED, COMPLETED, FAILED, CANCELLED = "working", "input_required", "completed", "failed", "cancelled"
STATUSES = frozenset({WORKING, INPUT_REQUIRED, COMPLETED, FAILED, CANCELLED})
ENDS = frozenset({COMPLETED, FAILED, CANCELLED})
MAX_ID_BYTES = 1024
"""Of an upstream's id: ours holds it, and is a header."""
MAX_MS = 10**12
"""Thirty years. More is taken for nothing."""
_MESSAGE_CHARS = 1000
_TIME_CHARS = 64


def wants_tasks(refused: UpstreamError) -> bool:
    """Whether this is refused only because the request declares no tasks."""
    match refused.data:
        case {"requiredCapabilities": {"extensions": {**wanted}}}:
            return set(cast("dict[str, Any]", wanted)) == {EXTENSION}
        case _:
            return False


def task_result(config: UpstreamConfig, spec: UpstreamSpec, raw: Mapping[str, Any]) -> ToolResult:
    """The result of a call that the upstream answers with a task. Raises `ToolError(UPSTREAM)` for what is none."""
    task_id = raw.get("taskId")
    members = task_members(config.name, raw)
    launch = launch_fingerprint(config.target)[:16]
    task = UpstreamTask(config.source, spec.name, task_id_in(config.name, task_id), launch, members)
    said = f"upstream {config.name} works on it as a task"
    return ToolResult(content=(text_block(said),), upstream_task=task)


def task_id_in(upstream: str, given: Any) -> str:
    if not isinstance(given, str) or not given.isprintable() or not 0 < len(given.encode()) <= MAX_ID_BYTES:
        raise ToolError(ErrorCode.UPSTREAM, f"upstream {upstream} answered with a task that has no usable id")
    return given


def task_members(upstream: str, raw: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of the task beside its id and what it brings. Raises `ToolError(UPSTREAM)`."""
    status = raw.get("status")
    if not isinstance(status, str) or status not in STATUSES:
        raise ToolError(
            ErrorCode.UPSTREAM,
            f"upstream {upstream} says of a task that it is {make_visible(str(status)[:40])!r}, which is no status",
        )
    members: dict[str, Any] = {"status": status}
    for name in ("createdAt", "lastUpdatedAt"):
        if isinstance(text := raw.get(name), str) and len(text) <= _TIME_CHARS and text.isprintable():
            members[name] = text
    ttl_ms = raw.get("ttlMs")
    members["ttlMs"] = ttl_ms if _is_duration(ttl_ms) else None
    if _is_duration(poll := raw.get("pollIntervalMs")):
        members["pollIntervalMs"] = poll
    if isinstance(message := raw.get("statusMessage"), str):
        members["statusMessage"] = make_visible(message[:_MESSAGE_CHARS])
    return members


def _is_duration(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MAX_MS
