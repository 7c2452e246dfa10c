"""`goat-mcp import`: the servers of other hosts in our upstreams file, and with `--move` goat-mcp in their place."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from goat_mcp.cli import flags
from goat_mcp.cli.host_changes import dry_run as dry_run_flag
from goat_mcp.cli.host_changes import project as project_flag
from goat_mcp.cli.host_changes import refuse_a_model, say_diff, shown_diff
from goat_mcp.cli.hosts.host import HostEnvironment
from goat_mcp.cli.hosts.importing import ImportPlan, SourcePlan, carry_out, plan_import
from goat_mcp.cli.hosts.sources import Source, source_from, sources_of
from goat_mcp.cli.hosts.switches import off_switch
from goat_mcp.cli.hosts.table import HOSTS, host_named
from goat_mcp.cli.terminal import escaped
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.redaction import Redactor
from goat_mcp.settings.loading import load_settings
from goat_mcp.state.directory import StateDirectory, own_upstreams_file


@click.command("import")
@click.argument("hosts", nargs=-1, metavar="[HOST]...")
@click.option("--from", "from_file", type=click.Path(path_type=Path), metavar="FILE", help="Read this file instead.")
@click.option(
    "--into", type=click.Path(path_type=Path), metavar="FILE", help="Write here, not into your own upstreams."
)
@project_flag
@click.option("--move", is_flag=True, help="Leave goat-mcp alone in the host's file; `goat-mcp eject` undoes it.")
@dry_run_flag
@flags.as_json
def import_servers(
    hosts: Sequence[str],
    from_file: Path | None,
    into: Path | None,
    project: Path | None,
    move: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Take over the MCP servers of other hosts, so that goat-mcp stands in front of them.

    HOST is claude-desktop, claude-code, cursor, vscode, codex, gemini, windsurf, zed, copilot-cli, cline, kilo,
    lm-studio, junie, opencode or goose. Without one, all that are found are read. What you have already is never
    changed, and nothing comes twice.
    """
    if move and not hosts:
        raise click.UsageError(
            "--move changes a host's file; name the host, e.g. goat-mcp import claude-desktop --move"
        )
    if from_file is not None and len(hosts) > 1:
        raise click.UsageError("--from reads one file; name at most one host")
    refuse_a_model(dry_run)
    environment = HostEnvironment.this()
    sources, broken = _sources(hosts, from_file, project, environment)
    plan = plan_import(sources, (into or own_upstreams_file()).absolute(), environment, move=move)
    if move and into is None:
        _check_that_ours_counts()
    if not dry_run:
        carry_out(plan, StateDirectory.default())
    if as_json:
        click.echo(json.dumps(_document(plan, dry_run) | {"broken": broken}))
    else:
        _print(plan, dry_run)
        for problem in broken:
            click.echo(f"goat-mcp: left out: {escaped(problem)}", err=True)


def _sources(
    hosts: Sequence[str], from_file: Path | None, project: Path | None, environment: Any
) -> tuple[list[Source], list[str]]:
    """What to import from; and where no host is named, which files cannot be read: the others are imported."""
    folder = None if project is None else project.resolve()
    named = [host_named(name) for name in hosts]
    if from_file is not None:
        return [source_from(from_file.expanduser(), named[0] if named else None, folder)], []
    every: list[Source] = []
    broken: list[ToolError] = []
    for host in named or HOSTS.values():
        try:
            for source in sources_of(host, environment, folder):
                _ = source.file.entries, off_switch(source, environment)  # whether they can be read
                every.append(source)
        except ToolError as problem:
            if named:
                raise
            broken.append(problem)
    found = [source for source in every if source.file.data is not None]
    if not found and broken:
        raise broken[0]
    if not found:
        places = ", ".join(dict.fromkeys(str(source.file.path) for source in every)) if named else "any host's place"
        raise ToolError(ErrorCode.NOT_FOUND, f"there is no file of servers in {places}", "Name one with --from.")
    return found, [problem.message for problem in broken]


def _check_that_ours_counts() -> None:
    """Raises `ToolError` where the user's settings name other upstreams: what was moved would be nowhere."""
    settings = load_settings({})
    ours = own_upstreams_file()
    if settings.source_of("upstreams") == "file" and ours.resolve() not in [
        path.resolve() for path in settings.upstreams
    ]:
        raise ToolError(
            ErrorCode.CONFIG,
            f"your goat-mcp.yaml names its own upstreams, and {ours} is not one of them",
            f"Nothing was changed. Add {ours} to upstreams there, or import into one of those with --into.",
        )


def _document(plan: ImportPlan, dry_run: bool) -> dict[str, Any]:
    document = {
        "into": str(plan.into.path),
        "changed": plan.into.is_one and not dry_run,
        "dry_run": dry_run,
        "hosts": [_host_fields(one, dry_run) for one in plan.sources],
    }
    return Redactor().tree(document, by_name=False)


def _host_fields(one: SourcePlan, dry_run: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "host": one.source.host.name,
        "file": str(one.source.file.path),
        "project": None if one.source.project is None else str(one.source.project),
        "servers": [
            {"name": server.name, "outcome": server.outcome.value, "as": server.to or None, "told": list(server.notes)}
            for server in one.servers
        ],
        "other_projects": one.source.projects,
        "unseen": one.source.host.unseen or None,
    }
    if one.change is not None:
        fields |= {"moved": one.change.is_one and not dry_run, "diff": shown_diff(one.change)}
    return fields


def _print(plan: ImportPlan, dry_run: bool) -> None:
    redactor = Redactor()
    for one in plan.sources:
        click.echo(f"{one.source.host.title}: {escaped(str(one.source.file.path))}")
        for server in one.servers:
            place = f" as {server.to}" if server.to and server.to != server.name else ""
            click.echo(escaped(f"  {server.name}: {_WORDS[server.outcome.value]}{place}"))
            for note in server.notes:
                click.echo(escaped(f"    - {redactor.text(note)}"))
        if not one.servers:
            click.echo("  no servers")
        if one.source.host.unseen and any(server.outcome.value == "imported" for server in one.servers):
            click.echo(f"  {one.source.host.unseen}: look at what came")
        for folder in one.source.projects:
            click.echo(escaped(f"  more for one project: --project {folder}"))
        if one.change is not None and one.change.is_one:
            say_diff(one.change)
    _print_end(plan, dry_run)


def _print_end(plan: ImportPlan, dry_run: bool) -> None:
    new = sum(server.outcome.value == "imported" for one in plan.sources for server in one.servers)
    moved = [one for one in plan.sources if one.change is not None and one.change.is_one]
    if dry_run:
        click.echo("Nothing was written (--dry-run).")
        return
    click.echo(f"{new} new in {plan.into.path}" if new else f"Nothing new for {plan.into.path}")
    for one in moved:
        click.echo(f"{one.source.host.title} starts goat-mcp now. Undo it with: goat-mcp eject {one.source.host.name}")
        if one.source.host.after:
            click.echo(one.source.host.after)


_WORDS = {
    "imported": "taken over",
    "present": "there already",
    "kept": "stays with the host",
    "itself": "left alone",
}
