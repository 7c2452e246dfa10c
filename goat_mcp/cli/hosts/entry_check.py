"""What `goat-mcp doctor` finds in the hosts' files: entries of goat-mcp that cannot work, files that cannot be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from goat_mcp.cli.hosts.host import Host, HostEnvironment, WorkspaceSource
from goat_mcp.cli.hosts.own_entry import first_of, launch_of, missing_part, names_workspace, own_names
from goat_mcp.cli.hosts.sources import Source, readable_sources
from goat_mcp.cli.hosts.table import hosts_in
from goat_mcp.cli.hosts.this_account import windows_home_unknown
from goat_mcp.cli.hosts.wsl_entry import wsl_launch
from goat_mcp.core.json_values import mapping
from goat_mcp.gateway.status.doctor import USAGE, Finding
from goat_mcp.processes.wsl import this_wsl


@dataclass(frozen=True)
class ExaminedHosts:
    """`count` is how many files there are."""

    count: int
    findings: Sequence[Finding]


def examine_host_files(environment: HostEnvironment, *, has_workspace: bool) -> ExaminedHosts:
    """The user's files of all hosts. `has_workspace`: the user's settings name one, so that no entry has to."""
    sources, broken = readable_sources(hosts_in(environment), environment)
    there = [source for source in sources if source.file.data is not None]
    broken = [one for one in broken if one.path is None or not _is_out_of_reach(one.path)]
    findings = [
        Finding(
            id="host_file",
            about=str(one.path or one.host.title),
            detail=one.why,
            fix="Fix the file; the host needs it.",
        )
        for one in broken
    ]
    findings += [finding for source in there for finding in _entries_examined(source, has_workspace)]
    if environment.wsl is not None and environment.around is None:
        unknown = windows_home_unknown()
        findings.append(Finding(id="windows_home", detail=unknown.message, fix=unknown.suggestion))
    return ExaminedHosts(len(there) + len(broken), findings)


def _is_out_of_reach(path: Path) -> bool:
    """Whether it is in a folder that we may not enter: then nothing is there for the host either."""
    try:
        path.lstat()
    except PermissionError:
        return True
    except OSError:
        pass
    return False


def _entries_examined(source: Source, has_workspace: bool) -> Iterator[Finding]:
    host, entries = source.host, source.file.entries
    ours = own_names(host, entries)
    for name in ours:
        entry = mapping(entries[name])
        if entry.get("disabled") is True or entry.get("enabled") is False:
            continue
        where = f"{host.title} starts goat-mcp ({name} in {source.file.path})"
        detail = fix = ""
        if missing := missing_part(host, *launch_of(host, entry)):
            detail, fix = f"with {missing}, which does not exist", "Write today's command"
        elif other := _missing_distribution(host, entry):
            detail, fix = f"in the distribution {other} of WSL, which does not exist", "Take that entry out, then"
        if detail:
            yield Finding(
                id="host_entry_command",
                about=host.name,
                detail=f"{where} {detail}",
                fix=f"{fix}: goat-mcp install {host.name}",
                exit_code=USAGE,
            )
        if host.workspace is WorkspaceSource.NONE and not has_workspace and not names_workspace(host, entry):
            yield Finding(
                id="host_entry_workspace",
                about=host.name,
                detail=f"{where} without a workspace, and the host names none: file tools answer E_NO_WORKSPACE",
                fix=f"Name one: goat-mcp install {host.name} --workspace DIR"
                if name == first_of(ours)
                else f"Add --workspace DIR to the arguments of {name} in that file, or take {name} out.",
            )


def _missing_distribution(host: Host, entry: Any) -> str:
    """The one that a host on Windows would start us in, if Windows does not list it."""
    launch = wsl_launch(*launch_of(host, entry)) if host.is_on_windows else None
    wsl = this_wsl()
    if launch is None or wsl is None or launch.distribution.lower() in ("", wsl.paths.distribution.lower()):
        return ""
    known = [name.lower() for name in wsl.distributions()]
    return launch.distribution if known and launch.distribution.lower() not in known else ""
