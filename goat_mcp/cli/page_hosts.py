"""The hosts of this account for the page: `goat-mcp install` and `uninstall` of one host, first shown, then done."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from goat_mcp.cli.host_changes import redacted_diff, refuse_a_model, restart_hint
from goat_mcp.cli.hosts.host import HostEnvironment
from goat_mcp.cli.hosts.importing import plan_install, write_host
from goat_mcp.cli.hosts.own_entry import (
    ServeOptions,
    first_of,
    launch_of,
    missing_part,
    named_workspaces,
    names_workspace,
    own_names,
)
from goat_mcp.cli.hosts.sources import Source, Unreadable, is_here, one_source, readable_sources
from goat_mcp.cli.hosts.table import hosts_in
from goat_mcp.cli.hosts.this_account import chosen_host, this_account
from goat_mcp.cli.hosts.uninstall import plan_uninstall, write_uninstall
from goat_mcp.cli.workspace_choice import checked_workspaces, workspace_note
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.server.ui.hosts import HostChange, HostHere, Step
from goat_mcp.state.directory import StateDirectory, own_upstreams_file
from goat_mcp.state.file_edit import Change


class PageHosts:
    """The account is looked at for each request: a host may have been installed meanwhile."""

    def __init__(self, state: StateDirectory) -> None:
        self._state = state

    def here(self) -> Sequence[HostHere]:
        account = this_account()
        sources, broken = readable_sources(hosts_in(account), account)
        found = [_host(source) for source in sources if is_here(source, account) or _is_connected(source)]
        unreadable = [_unreadable(one) for one in broken]
        return sorted([*found, *unreadable], key=lambda host: not host.connected)

    def plan(self, step: Step, host: str, workspace: str = "") -> HostChange:
        account = this_account()
        source = one_source(chosen_host(host, account), account, None)
        if step == "disconnect":
            _, change = plan_uninstall(source, self._state)
            return _shown(source, change)
        options = _options(workspace)
        return _shown(source, _connected(source, account, options), workspace_note(source, options))

    def carry_out(self, step: Step, host: str, workspace: str, digest: str) -> HostChange:
        refuse_a_model(dry=False)
        account = this_account()
        source = one_source(chosen_host(host, account), account, None)
        if step == "disconnect":
            is_as_it_was, change = plan_uninstall(source, self._state)
            shown = _checked(_shown(source, change), digest)
            if change.is_one:
                write_uninstall(change, self._state, is_as_it_was=is_as_it_was)
            return shown
        options = _options(workspace)
        change = _connected(source, account, options)
        shown = _checked(_shown(source, change, workspace_note(source, options)), digest)
        write_host(source, change, self._state, why="install")
        return shown


def _connected(source: Source, account: HostEnvironment, options: ServeOptions) -> Change:
    return plan_install(source, own_upstreams_file(), account, options)


def _options(workspace: str) -> ServeOptions:
    """Raises `ToolError(INPUT)` for what `install --workspace` would refuse, and for a path that is not whole."""
    named = workspace.strip()
    if not named:
        return ServeOptions()
    if not Path(named).expanduser().is_absolute():
        raise ToolError(
            ErrorCode.INPUT, f"workspace {named} is not a whole path", "Nothing was written. Begin it with / or ~."
        )
    return ServeOptions(checked_workspaces([named], may_ask=False))


def _checked(change: HostChange, digest: str) -> HostChange:
    if change.digest != digest:
        raise ToolError(
            ErrorCode.STALE,
            f"{change.file} was changed after you looked at it",
            "Nothing was written. Look at the change again.",
        )
    return change


def _shown(source: Source, change: Change, workspace: str = "") -> HostChange:
    host = source.host
    digest = hashlib.sha256(repr((str(change.path), change.before, change.after)).encode()).hexdigest()
    after = restart_hint(host) if change.is_one else ""
    return HostChange(host.title, str(change.path), redacted_diff(change), digest, workspace, after)


def _is_connected(source: Source) -> bool:
    return bool(own_names(source.host, source.file.entries))


def _host(source: Source) -> HostHere:
    host, entries = source.host, source.file.entries
    ours = own_names(host, entries)
    problem = workspace = ""
    if ours:
        entry = entries[first_of(ours)]
        missing = missing_part(host, *launch_of(host, entry))
        problem = f"it starts {missing}, which does not exist; connect it again" if missing else ""
        workspace = ", ".join(named_workspaces(host, entry))
        if not workspace:
            workspace = "as its entry says" if names_workspace(host, entry) else workspace_note(source, ServeOptions())
    others = len(entries) - len(ours)
    return HostHere(host.name, host.title, str(source.file.path), bool(ours), problem, workspace, others)


def _unreadable(one: Unreadable) -> HostHere:
    return HostHere(one.host.name, one.host.title, str(one.path or ""), False, f"its file {one.why}")
