"""`goat-mcp uninstall`: goat-mcp taken out of a host's servers."""

from __future__ import annotations

from pathlib import Path

import click

from goat_mcp.cli import flags
from goat_mcp.cli.host_changes import dry_run as dry_run_flag
from goat_mcp.cli.host_changes import project as project_flag
from goat_mcp.cli.host_changes import refuse_a_model, restart_hint, say_change
from goat_mcp.cli.host_changes import windows_home as windows_home_flag
from goat_mcp.cli.hosts.sources import one_source
from goat_mcp.cli.hosts.this_account import chosen_host, this_account
from goat_mcp.cli.hosts.uninstall import plan_uninstall, write_uninstall
from goat_mcp.state.directory import StateDirectory


@click.command()
@click.argument("host")
@project_flag
@windows_home_flag
@dry_run_flag
@flags.as_json
def uninstall(host: str, project: Path | None, windows_home: str | None, dry_run: bool, as_json: bool) -> None:
    """Take goat-mcp out of the servers of HOST. A file that nobody changed since is as it was, byte for byte."""
    refuse_a_model(dry_run)
    state = StateDirectory.default()
    environment = this_account(windows_home)
    folder = None if project is None else project.resolve()
    source = one_source(chosen_host(host, environment, in_project=folder is not None), environment, folder)
    is_as_it_was, change = plan_uninstall(source, state)
    if change.is_one and not dry_run:
        write_uninstall(change, state, is_as_it_was=is_as_it_was)
    say_change(
        source,
        change,
        already=f"{source.host.title} does not start goat-mcp: {change.path}",
        done=f"{change.path} does not start goat-mcp any more.\n{restart_hint(source.host)}",
        dry_run=dry_run,
        as_json=as_json,
    )
