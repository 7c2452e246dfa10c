"""`goat-mcp install`: goat-mcp among the servers of a host, beside those it has."""

from __future__ import annotations

from pathlib import Path

import click

from goat_mcp.cli import flags
from goat_mcp.cli.host_changes import dry_run as dry_run_flag
from goat_mcp.cli.host_changes import project as project_flag
from goat_mcp.cli.host_changes import refuse_a_model, say_change
from goat_mcp.cli.hosts.host import HostEnvironment
from goat_mcp.cli.hosts.importing import plan_install, write_host
from goat_mcp.cli.hosts.sources import one_source
from goat_mcp.cli.hosts.table import host_named
from goat_mcp.state.directory import StateDirectory, own_upstreams_file


@click.command()
@click.argument("host")
@project_flag
@dry_run_flag
@flags.as_json
def install(host: str, project: Path | None, dry_run: bool, as_json: bool) -> None:
    """Add goat-mcp to the servers of HOST; the others stay. `goat-mcp uninstall HOST` takes it out again."""
    refuse_a_model(dry_run)
    environment = HostEnvironment.this()
    source = one_source(host_named(host), environment, None if project is None else project.resolve())
    change = plan_install(source, own_upstreams_file(), environment)
    if not dry_run:
        write_host(source, change, StateDirectory.default(), why="install")
    done = f"{source.host.title} starts goat-mcp now: {change.path}"
    say_change(
        source,
        change,
        already=f"{source.host.title} starts goat-mcp already: {change.path}",
        done=f"{done}\n{source.host.after}" if source.host.after else done,
        dry_run=dry_run,
        as_json=as_json,
    )
