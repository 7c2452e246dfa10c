"""The status of one gateway as a document (OBS-1, R-PROC-1, R-LIMIT-1, R-PERM-5, R-HOOK-2).

`publishing` writes it to a file, `StatusResource` shows it to clients.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio.lowlevel

from goat_mcp.calls.hooks.command import HookCommand
from goat_mcp.commands.bash_call import DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS
from goat_mcp.core import platform
from goat_mcp.core.context import ToolContext
from goat_mcp.core.resources import Entry, Reading, json_entry, json_reading
from goat_mcp.core.rights import Rights
from goat_mcp.core.version import __version__
from goat_mcp.files.search.deadline import SEARCH_LIMIT_S
from goat_mcp.gateway.build.services import Services
from goat_mcp.gateway.status.last_runs import record_key
from goat_mcp.gateway.status.running_work import RunningWork
from goat_mcp.tools.glob import MAX_ENTRIES
from goat_mcp.upstreams.config.entry import HttpEndpoint, UpstreamConfig
from goat_mcp.upstreams.status import ReasonCode, UpstreamStatus
from goat_mcp.upstreams.upstreams import Upstreams

if TYPE_CHECKING:
    from goat_mcp.commands.sandbox.sandbox import SandboxState

STATUS_URI = "goat://status"
_OPERATORS = (
    "page",
    "how_started",
    "state",
    "config_files",
    "upstream_files",
    "watched_files",
    "notices",
    "hooks",
    "ignored_keys",
)
_OPERATORS_OF_UPSTREAM = ("stderr_tail", "last_failure", "record", "file", "target")


class GatewayStatus:
    """Makes a new document each time: it is cheap, and nothing of it is kept."""

    def __init__(
        self,
        services: Services,
        upstreams: Upstreams,
        *,
        asks_go_to: str,
        hooks: Sequence[HookCommand],
        problems: Callable[[Sequence[UpstreamStatus]], list[dict[str, Any]]],
        started_s: float,
        running: RunningWork,
    ) -> None:
        self.transport = "http" if services.serves_http else "stdio"
        self._services = services
        self._settings = services.settings
        self._upstreams = upstreams
        self._asks_go_to = asks_go_to
        self._hooks = hooks
        self._problems = problems
        self._started_s = started_s
        self._running = running

    @property
    def configs(self) -> Sequence[UpstreamConfig]:
        """The upstreams that are configured now."""
        return self._upstreams.configs

    async def upstreams(self) -> list[UpstreamStatus]:
        """How each stands. After each of them others have a turn on the event loop: many take some milliseconds."""
        found: list[UpstreamStatus] = []
        for status in self._upstreams.each_status():
            found.append(status)
            await anyio.lowlevel.checkpoint()
        return found

    def raw(self) -> dict[str, Any]:
        """The document with what may be secret in it. Only for `without_secrets`, which may take its time elsewhere."""
        statuses = self._upstreams.status()
        return self.with_upstreams(self.without_upstreams(statuses), statuses)

    def with_upstreams(self, raw: Mapping[str, Any], statuses: Sequence[UpstreamStatus]) -> dict[str, Any]:
        """`without_upstreams` made whole. May run in any thread."""
        now_s = time.time()
        configs = {config.name: config for config in self.configs}
        entries = [upstream_entry(one, configs.get(one.name) if one.server else None, now_s) for one in statuses]
        return {**raw, "upstreams": entries}

    def without_upstreams(self, statuses: Sequence[UpstreamStatus]) -> dict[str, Any]:
        """`raw` without the entries of the upstreams, whose statuses these are."""
        return {
            "version": __version__,
            "pid": os.getpid(),
            "transport": self.transport,
            "how_started": self._services.how_started,
            "started": iso(self._started_s),
            "page": self._services.page_url,
            "state": self._services.state_in_use(),
            "workspace": [str(root) for root in self._services.workspace.roots],
            "config_files": [str(file) for file in self._settings.config_files],
            "upstream_files": [str(file) for file in self._settings.upstreams],
            "watched_files": [str(file) for file in self._watched_files()],
            "notices": list(self._settings.notices),
            "permissions": self._permissions(),
            "sandbox": self._sandbox_state(),
            "process_limit": self._process_limit(),
            "hooks": [_hook(hook) for hook in self._hooks],
            "limits": self._limits(),
            "running": self._running.shown(),
            "problems": self._problems(statuses),
            "ignored_keys": [
                {"name": problem.name, "detail": problem.message, "file": problem.file}
                for problem in self._upstreams.problems
                if not problem.is_fatal
            ],
        }

    def _watched_files(self) -> Sequence[Path]:
        """Those that are read again when they change, whether they are there or not."""
        settings, is_open = self._settings, self._services.directories.tools_may_write
        default = settings.default_upstreams
        files = (*settings.upstreams, *([default] if default is not None else ()), *settings.watched_files)
        return [one for one in files if one not in settings.contents and not (is_open(one) or is_open(one.resolve()))]

    def without_secrets(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """May run in any thread."""
        return self._services.redactor.tree(raw)

    def document(
        self, *, for_operator: bool = True, shows: Callable[[str], bool] = lambda server: True
    ) -> dict[str, Any]:
        """What may be shown. Whoever is not the operator sees no stderr, and nothing of how it is
        set up: files, rules, hooks, where upstreams are. Nobody sees a server that `shows` says is hidden (PRF-2)."""
        # What runs is for the user's own programs, which read the file.
        raw = self._without_hidden(_without(self.raw(), ("running",)), shows)
        if not for_operator:
            return with_ages(self.without_secrets(_for_anybody(raw)), time.time())
        from goat_mcp.gateway.status.system_features import as_document, system_features  # loaded when somebody asks

        document = with_ages(self.without_secrets(raw), time.time())
        return {**document, "system": as_document(system_features(self._tried_sandbox()))}

    def _without_hidden(self, raw: dict[str, Any], shows: Callable[[str], bool]) -> dict[str, Any]:
        shown = {config.name for config in self._upstreams.configs if shows(config.server)}
        if len(shown) == len(self._upstreams.configs):
            return raw
        # A problem of an entry names it, and may name others.
        upstreams = [entry for entry in raw["upstreams"] if entry["name"] in shown]
        return {**raw, "upstreams": upstreams, "problems": [], "ignored_keys": []}

    def _limits(self) -> dict[str, Any]:
        settings = self._settings
        return {
            **settings.limits.model_dump(mode="json"),
            "output_max_chars": settings.output.max_chars,
            "bash_timeout_s": DEFAULT_TIMEOUT_MS / 1000,
            "bash_max_timeout_s": MAX_TIMEOUT_MS / 1000,
            "bash": settings.bash.model_dump(mode="json"),
            "search": settings.search.model_dump(mode="json"),
            "search_s": SEARCH_LIMIT_S,
            "search_entries": MAX_ENTRIES,
        }

    def _permissions(self) -> dict[str, Any]:
        listed = self._services.rules.now()
        rules = {name: [rule.text for rule in getattr(listed, name).rules] for name in ("allow", "ask", "deny")}
        return {"mode": self._services.modes.default.value, "asks_go_to": self._asks_go_to, "rules": rules}

    def _tried_sandbox(self) -> SandboxState | None:
        sandbox = self._services.sandbox.made
        return None if sandbox is None else sandbox.known_state()

    def _sandbox_state(self) -> dict[str, Any]:
        state = self._tried_sandbox()
        if state is None:
            wanted = self._settings.sandbox
            return {"name": "not tried yet", "wanted": "" if wanted is None else str(wanted), "reason": ""}
        return {"name": state.name, "wanted": str(state.wanted), "reason": state.reason}

    def _process_limit(self) -> dict[str, Any]:
        """What limits the processes of one command: a cgroup, the system's limit for the processes of a user, which
        counts in a sandbox of bubblewrap only, or nothing."""
        if not self._settings.bash.max_processes:
            return {"kind": "none", "reason": "bash.max_processes is 0"}
        if not platform.HAS_CGROUPS:
            return {"kind": "none", "reason": "this system counts all processes of a user, never those of a command"}
        cgroups = self._services.cgroups()
        if not cgroups.is_needed:
            return {"kind": "rlimit", "reason": ""}
        reason = cgroups.why_not
        if reason:
            return {"kind": "none", "reason": f"goat-mcp runs as root and can make no cgroup: {reason}"}
        return {"kind": "cgroup", "reason": ""}


def _for_anybody(raw: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **_without(raw, _OPERATORS),
        "permissions": _without(raw["permissions"], ("rules",)),
        "problems": [problem for problem in raw["problems"] if problem["reason_code"] in set(ReasonCode)],
        "upstreams": [_without(entry, _OPERATORS_OF_UPSTREAM) for entry in raw["upstreams"]],
    }


def _without(entry: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name not in names}


def _hook(hook: HookCommand) -> dict[str, Any]:
    return {
        "event": str(hook.event),
        "place": hook.location,
        "observes": hook.observes,
        "failure_denies": hook.refuses_on_failure,
        "keeps_claude_codes_meaning": hook.is_imported,
    }


class StatusResource:
    """`goat://status`: what `goat-mcp status` shows, for clients.

    Over stdio the client is the operator's own program; over HTTP it may be anybody who has a token.
    """

    templates: Sequence[Entry] = ()
    entries = (
        json_entry(STATUS_URI, "status", "This server and each MCP server behind it: state, reason, what is rejected"),
    )

    def __init__(self, status: GatewayStatus, shown: Callable[[Rights], Callable[[str], bool]]) -> None:
        """`shown`: which servers a reader with these rights may know of."""
        self._status = status
        self._shown = shown

    async def read(self, uri: str, ctx: ToolContext) -> Reading | None:
        if uri != STATUS_URI:
            return None
        is_operator = self._status.transport == "stdio"
        return json_reading(self._status.document(for_operator=is_operator, shows=self._shown(ctx.rights)))


STATELESS_VERSION = "2026-07-28"
_MOMENTS = ("since_s", "next_try_s", "catalog_at_s")


def upstream_entry(status: UpstreamStatus, config: UpstreamConfig | None, now_s: float) -> dict[str, Any]:
    """Every field of `status`, so that a new one is never left out here, and what is configured."""
    entry = {name: value for name, value in dataclasses.asdict(status).items() if name not in _MOMENTS}
    entry["state"] = str(status.state)
    entry["reason_code"] = str(status.reason_code)
    entry["since"] = iso(now_s - status.since_s) if config is not None else None
    entry["next_try"] = iso(now_s + status.next_try_s) if status.next_try_s else None
    entry["era"] = _era(status.version)
    entry["catalog_at"] = iso(status.catalog_at_s) if status.catalog_at_s else None
    if config is not None:
        entry |= _configured(config)
    return entry


def with_ages(document: Mapping[str, Any], now_s: float) -> dict[str, Any]:
    """The document with how old each catalog is now; in the file that others read it would change by itself."""
    upstreams = [{**entry, "catalog_age_s": _age_s(entry["catalog_at"], now_s)} for entry in document["upstreams"]]
    return {**document, "upstreams": upstreams}


def _age_s(at: str | None, now_s: float) -> int | None:
    return None if at is None else max(0, round(now_s - datetime.fromisoformat(at).timestamp()))


def _configured(config: UpstreamConfig) -> dict[str, Any]:
    target = config.target
    is_http = isinstance(target, HttpEndpoint)
    return {
        "transport": "http" if is_http else "stdio",
        # Arguments and a URL's query are where people put secrets that nothing recognises as such.
        "target": target.url.partition("?")[0] if is_http else target.command,
        "naming": config.naming,
        "start": config.start,
        "record": record_key(config),
        "sandboxed": not is_http and target.sandbox is not None,
        **({"account": "workspace"} if is_http and target.has_workspace_logins else {}),
    }


def _era(version: str) -> str:
    if not version:
        return ""
    return "stateless" if version >= STATELESS_VERSION else "handshake"


def iso(at_s: float) -> str:
    """Seconds since 1970 as `2026-11-22T10:00:00Z`."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
