"""`goat-mcp install`: goat-mcp among the servers of hosts, beside those they have, with a workspace and options."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from goat_mcp.cli import flags
from goat_mcp.cli.exit_codes import OK, USAGE
from goat_mcp.cli.host_changes import dry_run as dry_run_flag
from goat_mcp.cli.host_changes import project as project_flag
from goat_mcp.cli.host_changes import refuse_a_model, restart_hint, say_diff
from goat_mcp.cli.host_changes import windows_home as windows_home_flag
from goat_mcp.cli.hosts.host import Host, HostEnvironment, WorkspaceSource
from goat_mcp.cli.hosts.host_file import HostFile
from goat_mcp.cli.hosts.importing import new_entry, plan_install, write_host
from goat_mcp.cli.hosts.own_entry import NO_OPTIONS, OWN_NAME, ServeOptions, own_names
from goat_mcp.cli.hosts.sources import Source, Unreadable, is_here, one_source, readable_sources
from goat_mcp.cli.hosts.table import HOSTS, hosts_in, known_hosts
from goat_mcp.cli.hosts.this_account import chosen_host, this_account
from goat_mcp.cli.install_options import checked_options, settings_name_workspace
from goat_mcp.cli.terminal import say
from goat_mcp.cli.workspace_choice import asked_workspaces, has_workspace, is_answered, workspace_note
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.changes.redacted_diff import redacted_diff
from goat_mcp.state.directory import StateDirectory, own_upstreams_file
from goat_mcp.state.file_edit import Change

_GENERIC = Host("json", "any other host", "json", ("mcpServers",))
"""The notation that most hosts share."""


@dataclass(frozen=True)
class Installed:
    """The result for one host's file. `change` is None if it cannot be edited, for the reason `why`."""

    host: Host
    file: Path | None
    change: Change | None
    had_us: bool = False
    note: str = ""
    why: str = ""

    @property
    def result(self) -> str:
        if self.change is None:
            return "refused"
        if not self.change.is_one:
            return "already"
        return "changed" if self.had_us else "added"

    def next_steps(self) -> list[str]:
        if self.change is not None:
            return [part for part in (restart_hint(self.host) if self.change.is_one else "", self.note) if part]
        name = self.host.name
        return [f"Fix the file, then: goat-mcp install {name}", f"By hand: goat-mcp install --print {name}"]


@click.command(epilog=known_hosts())
@click.argument("hosts", nargs=-1, metavar="[HOST]...")
@flags.workspace
@click.option("--mode", metavar="MODE", help="The permission mode, e.g. plan or acceptEdits.")
@click.option("--preset", multiple=True, metavar="NAME", help="Only the tools of this preset, e.g. core or read_only.")
@click.option("--profile", metavar="NAME", help="Only what this profile of your settings leaves.")
@click.option("--all", "every", is_flag=True, help="Every host that is found on this computer.")
@click.option("--print", "prints", is_flag=True, help="Print the entry, and where to paste it; write nothing.")
@project_flag
@windows_home_flag
@dry_run_flag
@flags.as_json
def install(
    hosts: Sequence[str],
    workspace: Sequence[str],
    mode: str | None,
    preset: Sequence[str],
    profile: str | None,
    every: bool,
    prints: bool,
    project: Path | None,
    windows_home: str | None,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Add goat-mcp to the servers of each HOST; the others stay.

    Without --workspace you are asked for it on a terminal. With other options, a second install changes the entry.
    `goat-mcp uninstall HOST` takes it out again. `--print json` prints the entry for a host that is not known here.
    """
    environment = this_account(windows_home)
    if every == bool(hosts):
        raise click.UsageError(f"name a HOST, or all that are found here with --all: {_names_found(environment)}")
    if every and prints:
        raise click.UsageError("--print prints the entry of each HOST; name the hosts in place of --all")
    may_ask = is_answered() and not as_json
    folder = None if project is None else project.resolve()
    if prints:
        options = checked_options(workspace, mode, preset, profile, may_ask=may_ask)
        for name in hosts:
            host = _GENERIC if name == _GENERIC.name else chosen_host(name, environment, has_file=False)
            _print_entry(host, environment, options, as_json)
        return OK
    refuse_a_model(dry_run)
    if every:
        sources, broken = _found(environment, folder)
    else:
        named = [chosen_host(name, environment, in_project=folder is not None) for name in dict.fromkeys(hosts)]
        sources, broken = [one_source(host, environment, folder) for host in named], []
        if len(sources) > 1:
            sources, broken = _checked(sources)
    options = checked_options(workspace, mode, preset, profile, may_ask=may_ask)
    is_named = bool(options.workspace) or settings_name_workspace()
    asked: tuple[Path, ...] = ()
    wanting = [] if is_named else _wanting(sources)
    if wanting and may_ask:
        asked = asked_workspaces(wanting, folder)
    done = [
        _installed(
            source,
            replace(options, workspace=asked) if source in wanting else options,
            environment,
            is_named=is_named,
            dry_run=dry_run,
            is_one_of_many=every or len(hosts) > 1,
        )
        for source in sources
    ]
    done += [Installed(one.host, one.path, None, why=one.why) for one in broken]
    if len(hosts) == 1:
        _say(done[0], dry_run, as_json)
    else:
        _say_all(done, dry_run, as_json)
    return USAGE if any(one.change is None for one in done) else OK


def _names_found(environment: HostEnvironment) -> str:
    sources, _ = readable_sources(hosts_in(environment), environment)
    names = dict.fromkeys(source.host.name for source in sources if is_here(source, environment))
    return ", ".join(names) or "none was found; e.g. goat-mcp install claude-desktop"


def _found(environment: HostEnvironment, project: Path | None) -> tuple[list[Source], list[Unreadable]]:
    sources, broken = readable_sources(hosts_in(environment, project), environment, project)
    first = {source.host.name: source for source in reversed(sources)}  # one file a host, as with its name
    found = [source for source in first.values() if is_here(source, environment)][::-1]
    if not found and not broken:
        raise ToolError(
            ErrorCode.NOT_FOUND,
            "no host was found on this computer",
            f"Name one: goat-mcp install HOST, with HOST one of {', '.join(HOSTS)}.",
        )
    return found, broken


def _checked(sources: Sequence[Source]) -> tuple[list[Source], list[Unreadable]]:
    """Those that can be read, and the others."""
    readable: list[Source] = []
    broken: list[Unreadable] = []
    for source in sources:
        try:
            _ = source.file.entries
            readable.append(source)
        except ToolError as problem:
            broken.append(Unreadable(source.host, source.file.path, problem))
    return readable, broken


def _wanting(sources: Sequence[Source]) -> list[Source]:
    """The hosts to ask a workspace for: those that name none themselves, if there is one."""
    without = [source for source in sources if not has_workspace(source)]
    silent = [source for source in without if source.host.workspace is WorkspaceSource.NONE]
    return silent or [source for source in without if not own_names(source.host, source.file.entries)]


def _installed(
    source: Source,
    options: ServeOptions,
    environment: HostEnvironment,
    *,
    is_named: bool,
    dry_run: bool,
    is_one_of_many: bool,
) -> Installed:
    path = source.file.path
    try:
        had_us = bool(own_names(source.host, source.file.entries))
        change = plan_install(source, own_upstreams_file(), environment, options)
        if not dry_run:
            write_host(source, change, StateDirectory.default(), why="install")
    except ToolError as problem:
        if not is_one_of_many:
            raise
        return Installed(source.host, path, None, why=Unreadable(source.host, path, problem).why)
    note = "" if is_named and not options.workspace else workspace_note(source, options)
    return Installed(source.host, path, change, had_us, note)


def _say(one: Installed, dry_run: bool, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(_fields(one, dry_run) | {"dry_run": dry_run}))
        return
    change = one.change
    if change is None:
        return
    say_diff(change)
    title, path = one.host.title, change.path
    lines = {
        "already": f"{title} starts goat-mcp already: {path}",
        "added": f"{title} starts goat-mcp now: {path}",
        "changed": f"The entry of goat-mcp was changed: {path}",
    }
    say("Nothing was written (--dry-run)." if dry_run and change.is_one else lines[one.result])
    if one.note:
        say(one.note)
    if change.is_one and not dry_run:
        say(restart_hint(one.host))


def _say_all(done: Sequence[Installed], dry_run: bool, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"hosts": [_fields(one, dry_run) for one in done], "dry_run": dry_run}))
        return
    for one in done:
        if one.change is not None:
            say_diff(one.change)
    for one in done:
        say(": ".join(part for part in (one.host.title, one.result, str(one.file or ""), one.why) if part))
        for line in "\n".join(one.next_steps()).splitlines():
            say(f"  {line}")
    if dry_run:
        say("Nothing was written (--dry-run).")
    elif any(one.change is not None and one.change.is_one for one in done):
        say("Undo: goat-mcp uninstall HOST")


def _fields(one: Installed, dry_run: bool) -> dict[str, Any]:
    is_written = one.change is not None and one.change.is_one and not dry_run
    return {
        "host": one.host.name,
        "file": None if one.file is None else str(one.file),
        "changed": is_written,
        "diff": "" if one.change is None else redacted_diff(one.change),
        "result": one.result,
        "why": one.why,
        "workspace_note": one.note,
        "next": "\n".join(one.next_steps()),
    }


def _print_entry(host: Host, environment: HostEnvironment, options: ServeOptions, as_json: bool) -> None:
    """The entry in the host's notation on stdout; where it belongs on stderr, so that the first can be piped."""
    entry = new_entry(host, own_upstreams_file(), environment, options)
    file = environment.user_file(host)
    empty = HostFile(replace(host, new_file={}), file or Path(host.name), None, host.root)
    text = empty.changed(remove=(), add={OWN_NAME: entry}).decode()
    where = _paste_into(host, file)
    if as_json:
        fields = {"host": host.name, "file": None if file is None else str(file), "paste_into": where}
        click.echo(json.dumps({**fields, "entry": entry, "text": text}))
        return
    click.echo(f"{where}:", err=True)
    click.echo(text.strip("\n"))
    if options == NO_OPTIONS and host.workspace is WorkspaceSource.NONE:
        click.echo("With a workspace: add --workspace DIR.", err=True)


def _paste_into(host: Host, file: Path | None) -> str:
    if host is _GENERIC:
        return "Paste this into the file or the dialog in which the host keeps its MCP servers"
    if host.paste_into:
        return f"Paste this into {host.title}: {host.paste_into}"
    if file is not None:
        return f"Paste this into {file}, beside the servers that are there"
    return f"Paste this into {host.project or 'the settings'} of {host.title}, beside the servers that are there"
