"""What is wrong with what a gateway was given, though it runs: for its log, and for the commands that show tools."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from goat_mcp.calls.audit import AuditLog
from goat_mcp.calls.permissions.rules import RuleSet
from goat_mcp.catalog.registry import Registry
from goat_mcp.core.names import BUILTIN_NAMES, META_NAMES, SEPARATOR, UPSTREAM_PREFIX
from goat_mcp.gateway.build.hooks import notices
from goat_mcp.gateway.build.manifests import why_off
from goat_mcp.gateway.build.tools import ChosenTools
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import search_priority_files
from goat_mcp.state.telemetry import Telemetry
from goat_mcp.upstreams.config.upstream_files import UpstreamProblem
from goat_mcp.upstreams.upstreams import Upstreams

if TYPE_CHECKING:  # loaded when a file is named, or a hook configured
    from goat_mcp.calls.hooks.programs import Programs
    from goat_mcp.settings.claude import ClaudeSettings


def log_problems(
    telemetry: Telemetry,
    settings: Settings,
    claude_settings: Sequence[ClaudeSettings],
    upstreams: Upstreams,
    rules: RuleSet,
) -> None:
    """One log line for each settings file, Claude Code's too, of which a part has no effect, each upstream entry that
    is wrong, and each rule that speaks of nobody."""
    for notice in settings.notices:
        telemetry.warning("settings", notice=notice)
    for notice in notices(claude_settings):
        telemetry.warning("claude settings", notice=notice)
    for problem in upstreams.problems:
        log_entry_problem(telemetry, problem)
    for rule in _rules_about_nobody(rules, {status.server for status in upstreams.status()}):
        telemetry.warning("permission rule", rule=rule["name"], problem=rule["detail"])


def log_entry_problem(telemetry: Telemetry, problem: UpstreamProblem) -> None:
    telemetry.warning("upstream entry", name=problem.name, reason_code=problem.reason_code, problem=problem.message)


def configuration_problems(
    upstreams: Upstreams, registry: Registry, chosen: ChosenTools, audit: AuditLog, rules: RuleSet
) -> list[dict[str, Any]]:
    """What is wrong with upstreams, which tools a name collision withholds, which rules speak of nobody, whether calls
    go unrecorded, and whether the user's order of search results can be used."""
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
    silent = _rules_about_nobody(rules, {status.server for status in upstreams.status()})
    return wrong + collided + chosen.unknown_servers() + silent + unrecorded + _unusable_search_priority()


def silent_hooks(programs: Programs | None, registry: Registry, upstreams: Upstreams) -> Sequence[tuple[str, str]]:
    """Hooks whose matcher means no tool that is there now, and why; of tools that nobody has listed yet none."""
    if programs is None:
        return ()
    from goat_mcp.calls.hooks import silent

    tools = {*BUILTIN_NAMES, *META_NAMES, *(tool.spec.rule_name for tool in registry.snapshot.tools.values())}
    listed = {name.removeprefix(UPSTREAM_PREFIX).partition(SEPARATOR)[0] for name in tools}
    unlisted = {status.server for status in upstreams.status() if not status.version} - listed
    return tuple(
        silent.silent_hooks(programs.hooks, tools, is_off=lambda name: why_off(name) is not None, unlisted=unlisted)
    )


def _unusable_search_priority() -> list[dict[str, Any]]:
    files = search_priority_files()
    if not any(os.path.exists(path) for path in files):  # noqa: PTH110  # a path that cannot be one is not there either
        return []
    # Most users have no such file, and asking for problems is part of every start.
    from goat_mcp.files.search.priority import SearchPriority

    problem = SearchPriority(files).order().problem
    return [{"name": "search_priority.json", "reason_code": "unusable_file", "detail": problem}] if problem else []


def _rules_about_nobody(rules: RuleSet, servers: Collection[str]) -> list[dict[str, Any]]:
    """Rules for a server that nobody configured: no error, since one settings file serves many lists of servers; but
    one that denies under a misspelt name protects nobody."""
    found: list[dict[str, Any]] = []
    for effect, listed in (("allow", rules.allow), ("ask", rules.ask), ("deny", rules.deny)):
        for rule in listed.rules:
            server = rule.server or (rule.tool.split(SEPARATOR)[1] if rule.tool.startswith(UPSTREAM_PREFIX) else "")
            if server and server not in servers:
                known = f"; there are {', '.join(sorted(servers))}" if servers else ""
                detail = f"permissions.{effect} speaks of nobody: no upstream is called {server}{known}"
                found.append({"name": rule.text, "reason_code": "unknown_server", "detail": detail})
    return found
