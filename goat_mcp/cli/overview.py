"""What `goat-mcp` shows without a command: who starts it, what is behind it, what runs, what waits, and the next step.

It reads a few files and starts nothing; in WSL it asks Windows for its user. What it cannot read it leaves to `status`
and `doctor`.
"""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import click

from goat_mcp.calls.approvals.record import Kind
from goat_mcp.calls.approvals.store import ApprovalStore
from goat_mcp.cli.hosts.own_entry import launch_of, missing_part, own_names
from goat_mcp.cli.hosts.sources import is_here, readable_sources
from goat_mcp.cli.hosts.table import hosts_in, written_host
from goat_mcp.cli.hosts.this_account import this_account
from goat_mcp.cli.server_records import age, last_runs
from goat_mcp.cli.terminal import escaped
from goat_mcp.core.json_values import items, mapping
from goat_mcp.core.version import __version__
from goat_mcp.settings.upstream_files import configured_servers, entries_in, upstream_files
from goat_mcp.state.directory import StateDirectory

MAX_WIDTH = 100
_LABEL_CHARS = 10
_MAX_NAMES = 6
_MAX_SERVERS = 4
_MAX_PROCESSES = 2
_MAX_STEPS = 4
_MAX_LINES = {"Hosts": 4, "Servers": 5, "Running": 3, "Waiting": 3, "Next": 4}


def show_overview() -> None:
    """Under 20 lines on stdout."""
    state = StateDirectory.default()
    has_state = state.path.is_dir()
    running = _running(state) if has_state else []
    with_us, stale, without, broken, theirs = _hosts()
    servers = _servers(running)
    unreadable = [file.name for file in upstream_files() if entries_in(file) is None]
    waiting = _waiting(state) if has_state else []
    width = min(shutil.get_terminal_size().columns, MAX_WIDTH) - 1 - _LABEL_CHARS
    sections = {
        "Hosts": _host_lines(with_us, stale, without, broken),
        "Servers": _server_lines(servers, unreadable, width),
        "Running": _running_lines(running),
        "Waiting": waiting or ["nothing waits for you"],
        "Next": _steps(with_us, [*stale, *without], [*broken, *stale, *unreadable], servers, theirs),
    }
    click.echo(f"goat-mcp {__version__}")
    for label, lines in sections.items():
        shown = [part for line in lines for part in _wrapped(line, width)][: _MAX_LINES[label]]
        for at, line in enumerate(shown):
            click.echo(f"{label if at == 0 else '':{_LABEL_CHARS}}{line}")


def _wrapped(line: str, width: int) -> list[str]:
    return textwrap.wrap(escaped(line), width, subsequent_indent="  ", break_on_hyphens=False) or [""]


def _hosts() -> tuple[list[str], list[str], list[str], list[str], int]:
    """Names of hosts that start goat-mcp, that would if its program were there, that are here without it, that have a
    broken file; and how many servers of others the third have."""
    environment = this_account()
    sources, unreadable = readable_sources(hosts_in(environment), environment)
    with_us: list[str] = []
    stale: list[str] = []
    without: list[str] = []
    theirs = 0
    for source in sources:
        entries = source.file.entries
        if ours := own_names(source.host, entries):
            is_stale = all(missing_part(source.host, *launch_of(source.host, entries[name])) for name in ours)
            (stale if is_stale else with_us).append(source.host.name)
        elif is_here(source, environment):
            without.append(source.host.name)
            theirs += len(entries)
    return with_us, stale, without, [one.host.name for one in unreadable], theirs


def _host_lines(
    with_us: Sequence[str], stale: Sequence[str], without: Sequence[str], broken: Sequence[str]
) -> list[str]:
    kinds = (
        (with_us, "start goat-mcp", "starts goat-mcp"),
        (stale, "name a goat-mcp that does not exist", "names a goat-mcp that does not exist"),
        (without, "are here without it", "is here without it"),
        (broken, "have a file that cannot be read", "has a file that cannot be read"),
    )
    lines = [f"{_named(names)} {several if len(names) > 1 else one}" for names, several, one in kinds if names]
    return lines or ["none was found on this computer"]


def _named(names: Sequence[str]) -> str:
    titles = [written_host(name).title for name in names]
    more = len(titles) - _MAX_NAMES
    return f"{', '.join(titles[:_MAX_NAMES])} and {more} more" if more > 0 else ", ".join(titles)


def _running(state: StateDirectory) -> list[dict[str, Any]]:
    from goat_mcp.gateway.status.process_files import ProcessFiles

    return ProcessFiles(state).running()


def _running_lines(running: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = [
        f"process {one['pid']} over {one['transport']} since {one['started']} in "
        f"{', '.join(map(str, items(one.get('workspace')))) or 'no workspace yet'}"
        for one in running[:_MAX_PROCESSES]
    ]
    if len(running) > _MAX_PROCESSES:
        lines.append(f"{len(running) - _MAX_PROCESSES} more: goat-mcp status")
    return lines or ["no goat-mcp runs now; hosts start it"]


def _servers(running: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The configured servers with the last known state: of a process that runs, else of the last one."""
    found: dict[str, str] = {}
    for document in running:
        for upstream in items(document.get("upstreams")):
            entry = mapping(upstream)
            reason, tools = entry.get("reason_code"), entry.get("tool_count")
            found[str(entry.get("name"))] = f"{entry.get('state')} ({reason})" if reason else _counted(tools, entry)
    failed = {
        run.name: f"failed {age(run.failed_at_s)} ago: {run.cause}"
        for run in last_runs().values()
        if run.failed_at_s > run.worked_at_s
    }
    for name, entry in configured_servers().items():
        is_off = mapping(entry).get("disabled") is True
        found.setdefault(name, "off" if is_off else failed.get(name, "no failure is known"))
    return found


def _counted(tools: Any, entry: Mapping[str, Any]) -> str:
    return f"{entry.get('state')}, {tools} tool{'' if tools == 1 else 's'}"


def _server_lines(servers: Mapping[str, str], unreadable: Sequence[str], width: int) -> list[str]:
    trouble = sorted(servers, key=lambda name: not servers[name].startswith(("failed", "refused")))
    lines = [f"{name}: {servers[name]}" for name in trouble[:_MAX_SERVERS]]
    if len(servers) > _MAX_SERVERS:
        lines.append(f"{len(servers) - _MAX_SERVERS} more: goat-mcp status")
    shown = [textwrap.shorten(line, width, placeholder=" ...") for line in lines]
    return [*(f"{file} cannot be read" for file in unreadable), *shown] or ["none yet"]


def _waiting(state: StateDirectory) -> list[str]:
    """What the user has to decide."""
    lines: list[str] = []
    if calls := sum(one.request.kind is Kind.CALL for one in ApprovalStore(state).waiting()):
        lines.append(f"{calls} call{'' if calls == 1 else 's'}: goat-mcp approvals")
    if (state.path / "plans").is_dir():
        from goat_mcp.state.plans import PlanStatus, all_plans

        if plans := sum(plan.status is PlanStatus.WAITING for _, plan in all_plans(state)):
            lines.append(f"{plans} plan{'' if plans == 1 else 's'}: goat-mcp plan list")
    if changes := len([*(state.path / "review").glob("*.json")]):
        lines.append(f"{changes} change{'' if changes == 1 else 's'} of files: goat-mcp review list")
    return lines


def _steps(
    with_us: Sequence[str],
    without: Sequence[str],
    broken: Sequence[str],
    servers: Mapping[str, str],
    theirs: int,
) -> list[str]:
    steps: list[str] = []
    if not with_us and not without:
        steps.append("goat-mcp demo: see the main job in a throw-away workspace")
    if not with_us:
        host = without[0] if len(without) == 1 else "HOST"
        steps.append(f"goat-mcp install {host}: start it from a host")
    if broken or any(state.startswith(("failed", "refused")) for state in servers.values()):
        steps.append("goat-mcp doctor: see what is wrong, and how to fix it")
    if theirs and not servers:
        steps.append(f"goat-mcp import: put the {theirs} servers of your hosts behind it")
    if with_us and servers:
        steps.append("goat-mcp list: see all tools")
    if with_us and not servers and not theirs:
        steps.append("goat-mcp add NAME -- COMMAND: put a server behind it")
    return [*steps[: _MAX_STEPS - 1], "goat-mcp help: all commands"]
