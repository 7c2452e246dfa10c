"""`goat-mcp remove`: servers taken out of the user's files of upstreams."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from goat_mcp.cli import exit_codes, flags
from goat_mcp.cli.host_changes import dry_run as dry_run_flag
from goat_mcp.cli.host_changes import refuse_a_model
from goat_mcp.cli.own_file import say_change
from goat_mcp.cli.running_servers import say_followers
from goat_mcp.files.changes.redacted_diff import redacted_diff
from goat_mcp.gateway.status.running_servers import fields, readers_of
from goat_mcp.settings.loading import load_settings
from goat_mcp.settings.own_servers import OwnServer, ServersFile, read_servers, servers_to_change, users_files
from goat_mcp.state.file_edit import edit_alone, write_change


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--from", "from_file", type=click.Path(path_type=Path), metavar="FILE", help="Only from this file.")
@dry_run_flag
@flags.as_json
def remove(names: Sequence[str], from_file: Path | None, dry_run: bool, as_json: bool) -> int:
    """Take servers out. Calls that run end first; `goat-mcp disable NAME` keeps the entry."""
    refuse_a_model(dry_run, "change which servers there are")
    files = users_files(load_settings({})) if from_file is None else [from_file.expanduser().absolute()]
    with edit_alone():
        servers = servers_to_change(names, files)
        changes = [file.change for file in _without(servers)]
        for change in changes if not dry_run else ():
            write_change(change)
    followers = [] if dry_run else readers_of(servers[0].file.path)
    if as_json:
        document = {
            "removed": [{"name": one.name, "file": str(one.file.path)} for one in servers],
            "changed": not dry_run,
            "dry_run": dry_run,
            "diff": "\n".join(redacted_diff(change) for change in changes),
            "running": fields(followers),
        }
        click.echo(json.dumps(document))
        return exit_codes.OK
    for change in changes:
        say_change(change, dry_run=dry_run)
    if not dry_run:
        say_followers(followers)
    return exit_codes.OK


def _without(servers: Sequence[OwnServer]) -> list[ServersFile]:
    """The files, each once, without these."""
    edited = {one.file.path: read_servers(one.file.path) for one in servers}
    for one in servers:
        edited[one.file.path] = edited[one.file.path].without(one.name)
    return list(edited.values())
