"""What is wrong with what a gateway was given, though it runs: for its log, and for the commands that show tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from goat_mcp.audit import AuditLog
from goat_mcp.chosen_hooks import notices
from goat_mcp.chosen_tools import ChosenTools
from goat_mcp.registry import Registry
from goat_mcp.settings import Settings
from goat_mcp.telemetry import Telemetry
from goat_mcp.upstreams.upstreams import Upstreams

if TYPE_CHECKING:  # loaded when a file is named
    from goat_mcp.claude_settings import ClaudeSettings


def log_problems(
    telemetry: Telemetry, settings: Settings, claude_settings: Sequence[ClaudeSettings], upstreams: Upstreams
) -> None:
    """One log line for each settings file, Claude Code's too, of which a part has no effect, and each upstream entry
    that is wrong."""
    for notice in settings.notices:
        telemetry.warning("settings", notice=notice)
    for notice in notices(claude_settings):
        telemetry.warning("claude settings", notice=notice)
    for problem in upstreams.problems:
        telemetry.warning("upstream entry", name=problem.name, reason_code=problem.reason_code, problem=problem.message)


def known_problems(
    upstreams: Upstreams, registry: Registry, chosen: ChosenTools, audit: AuditLog
) -> list[dict[str, Any]]:
    """What is wrong with upstreams, which tools a name collision withholds, and whether calls go unrecorded."""
    wrong = [
        {"name": status.name, "reason_code": status.reason_code, "detail": status.detail}
        for status in upstreams.status()
        if status.reason_code
    ]
    collided = [
        {"name": collision.name, "reason_code": "name_collision", "detail": str(collision)}
        for collision in registry.snapshot.collisions
    ]
    unrecorded = [{"name": "audit", "reason_code": "not_recorded", "detail": audit.problem}] if audit.problem else []
    return wrong + collided + chosen.unknown_servers() + unrecorded
