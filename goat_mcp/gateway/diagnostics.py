"""Configuration problems that do not stop the gateway: for its log, and for the commands that show tools."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from goat_mcp.catalog.builtin_contracts import names_of_ours
from goat_mcp.catalog.registry import Registry
from goat_mcp.core.names import SEPARATOR, UPSTREAM_PREFIX
from goat_mcp.gateway.build.declared_tools import DeclaredTools
from goat_mcp.gateway.build.extensions import UserCode, notices
from goat_mcp.gateway.build.manifests import why_off
from goat_mcp.gateway.build.services import Services
from goat_mcp.gateway.build.upstreams import ConfiguredUpstreams, log_entry_problem
from goat_mcp.settings.watched_settings import WatchedSettings
from goat_mcp.state.directory import search_priority_files
from goat_mcp.upstreams.status import UpstreamStatus
from goat_mcp.upstreams.upstreams import Upstreams


@dataclass(eq=False)
class Diagnostics:
    """Of one gateway."""

    services: Services
    code: UserCode
    registry: Registry
    upstreams: Upstreams
    declared: DeclaredTools
    watched: WatchedSettings
    configured: ConfiguredUpstreams
    features: dict[str, str] = field(default_factory=dict[str, str])
    """What is wrong with a part that runs beside the calls, by its place in the settings."""
    _logged: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    def problems(self, statuses: Sequence[UpstreamStatus] | None = None) -> list[dict[str, Any]]:
        """What is wrong now, for people: `name`, `reason_code`, `detail`, without secrets. `statuses`: those of all
        upstreams, if they are at hand.

        That is: upstreams, tools that a name collision keeps out, rules and choices about unknown servers, calls that
        are not recorded, the user's order of search results if it cannot be used, features, and manifests and skills.
        """
        audit = self.services.audit
        wrong = [
            {"name": status.name, "reason_code": status.reason_code, "detail": status.detail}
            for status in (self.upstreams.status() if statuses is None else statuses)
            if status.reason_code
        ]
        collided = [
            {"name": collision.name, "reason_code": "name_collision", "detail": str(collision)}
            for collision in self.registry.snapshot.collisions
        ]
        unrecorded = (
            [{"name": "audit", "reason_code": "not_recorded", "detail": audit.problem}] if audit.problem else []
        )
        found = wrong + collided + self.configured.chosen.unknown_servers() + self._rules_about_nobody() + unrecorded
        found += [
            {"name": name, "reason_code": "feature_failed", "detail": detail} for name, detail in self.features.items()
        ]
        found += self._settings_not_in_force() + _unusable_search_priority() + self.declared.problems()
        return self.services.redactor.tree(found)

    def report_feature(self, name: str, detail: str) -> None:
        """A part that runs beside the calls has a problem; with "", it has none any more. Each is logged once."""
        if self.features.get(name, "") == detail:
            return
        if detail:
            self.features[name] = detail
        else:
            del self.features[name]
        if detail and (name, detail) not in self._logged:
            self._logged.add((name, detail))
            self.services.telemetry.warning("feature", name=name, problem=detail)
        self.services.announcements.changed("goat://status")

    def _settings_not_in_force(self) -> list[dict[str, Any]]:
        """What settings files say now and does not count: yet, or at all."""
        found: list[dict[str, Any]] = []
        for problem in (self.watched.problem, *self.watched.file_problems):
            if problem:
                found.append({"name": "settings", "reason_code": "broken_settings", "detail": problem})
        if waiting := self.watched.waiting_for_restart:
            detail = f"changed since the start, and read at the start only: {', '.join(waiting)}"
            found.append({"name": "settings", "reason_code": "restart_needed", "detail": detail})
        return found

    def log_settings_again(self) -> None:
        """They were read again: what of that is not in force, in the log and the status."""
        for problem in self._settings_not_in_force():
            self.services.telemetry.warning("settings", problem=problem["detail"])
        for notice in self.watched.in_force.notices:
            self.services.telemetry.warning("settings", notice=notice)
        self.services.announcements.changed("goat://status")

    def log(self) -> None:
        """One log line for each settings file, Claude Code's too, of which a part has no effect, each wrong upstream
        entry, each rule about an unknown server, and each problem of what is declared."""
        telemetry = self.services.telemetry
        for notice in self.services.settings.notices:
            telemetry.warning("settings", notice=notice)
        for notice in notices(self.code.claude_files):
            telemetry.warning("claude settings", notice=notice)
        for problem in self.upstreams.problems:
            log_entry_problem(telemetry, problem)
        for rule in self._rules_about_nobody():
            telemetry.warning("permission rule", rule=rule["name"], problem=rule["detail"])
        self.declared.log_problems(telemetry)

    def log_silent_hooks(self) -> None:
        for hook, problem in self.silent_hooks():
            self.services.telemetry.warning("hook", hook=hook, problem=problem)

    def silent_hooks(self) -> Sequence[tuple[str, str]]:
        """Hooks whose matcher means no tool that is there now, and why; of tools that nobody has listed yet none."""
        if (programs := self.code.programs) is None:
            return ()
        from goat_mcp.calls.hooks.command import unmatched_hooks

        tools = {*names_of_ours(), *(tool.spec.rule_name for tool in self.registry.snapshot.tools.values())}
        listed = {name.removeprefix(UPSTREAM_PREFIX).partition(SEPARATOR)[0] for name in tools}
        unlisted = {status.server for status in self.upstreams.status() if not status.version} - listed
        return tuple(
            unmatched_hooks(programs.hooks, tools, is_off=lambda name: why_off(name) is not None, unlisted=unlisted)
        )

    def _rules_about_nobody(self) -> list[dict[str, Any]]:
        """Rules about a server that nobody configured: no error, since one settings file serves many lists of servers;
        but one that denies under a misspelt name protects nobody."""
        rules = self.services.rules.now()
        servers = sorted({config.server for config in self.upstreams.configs})
        found: list[dict[str, Any]] = []
        for effect, listed in (("allow", rules.allow), ("ask", rules.ask), ("deny", rules.deny)):
            for rule in listed.rules:
                server = rule.server or (rule.tool.split(SEPARATOR)[1] if rule.tool.startswith(UPSTREAM_PREFIX) else "")
                if server and server not in servers:
                    known = f"; there are {', '.join(servers)}" if servers else ""
                    detail = f"permissions.{effect} speaks of nobody: no upstream is called {server}{known}"
                    found.append({"name": rule.text, "reason_code": "unknown_server", "detail": detail})
        return found


def _unusable_search_priority() -> list[dict[str, Any]]:
    files = search_priority_files()
    if not any(os.path.exists(path) for path in files):  # noqa: PTH110  # a path that cannot be one is not there either
        return []
    # Most users have no such file, and asking for problems is part of every start.
    from goat_mcp.files.search.priority import SearchPriority

    problem = SearchPriority(files).order().problem
    return [{"name": "search_priority.json", "reason_code": "unusable_file", "detail": problem}] if problem else []
