"""What `import`, `eject`, `install` and `uninstall` show of a change of a file: a diff without secrets."""

from __future__ import annotations

import json
from pathlib import Path

import click

from goat_mcp.cli.hosts.host import Host
from goat_mcp.cli.hosts.sources import Source
from goat_mcp.cli.hosts.this_account import WINDOWS_HOME_VARIABLE
from goat_mcp.cli.terminal import say
from goat_mcp.cli.terminal_user import refuse_if_run_by_a_model
from goat_mcp.files.changes.redacted_diff import redacted_diff
from goat_mcp.state.file_edit import Change

dry_run = click.option("--dry-run", is_flag=True, help="Show what would be done and do nothing.")
project = click.option(
    "--project",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="DIR",
    help="The servers of this project in place of the user's.",
)

windows_home = click.option(
    "--windows-home",
    metavar="DIR",
    envvar=WINDOWS_HOME_VARIABLE,
    help="In WSL: the folder of the Windows user, if it is not found.",
)


def refuse_a_model(dry: bool, what: str = "change which servers a host starts") -> None:
    """Such a change is the user's word. Raises `ToolError(PERMISSION)`."""
    if not dry:
        refuse_if_run_by_a_model(what)


def say_diff(change: Change) -> None:
    text = redacted_diff(change)
    if text:
        click.echo(text)


def say_change(source: Source, change: Change, *, already: str, done: str, dry_run: bool, as_json: bool) -> None:
    """Show the change of one host's file: `already` is said if nothing changes, `done` if it is written."""
    if as_json:
        fields = {"host": source.host.name, "file": str(change.path), "changed": change.is_one and not dry_run}
        click.echo(json.dumps({**fields, "diff": redacted_diff(change), "dry_run": dry_run}))
        return
    say_diff(change)
    if not change.is_one:
        say(already)
    else:
        say("Nothing was written (--dry-run)." if dry_run else done)


def restart_hint(host: Host) -> str:
    """What has to be done for the host to see a change of its servers."""
    return host.after or f"Restart {host.title}."
