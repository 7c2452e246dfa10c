"""`goat-mcp eject`: a host's file as it was before goat-mcp wrote it, byte for byte."""

from __future__ import annotations

import json
from pathlib import Path

import click

from goat_mcp.cli import flags
from goat_mcp.cli.host_changes import dry_run as dry_run_flag
from goat_mcp.cli.host_changes import refuse_a_model, restart_hint, say_diff
from goat_mcp.cli.hosts.receipts import Receipts
from goat_mcp.cli.hosts.table import host_named, written_host
from goat_mcp.cli.hosts.uninstall import plan_eject, written_files
from goat_mcp.cli.terminal import say
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.changes.redacted_diff import redacted_diff
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.file_edit import replace_bytes


@click.command()
@click.argument("host", required=False)
@click.option(
    "--file", "named", type=click.Path(path_type=Path), metavar="FILE", help="Which file, if there are several."
)
@click.option(
    "--keep-changes",
    is_flag=True,
    help="If the file was changed since: put the servers back, keep the changes, and list them.",
)
@dry_run_flag
@flags.as_json
def eject(host: str | None, named: Path | None, keep_changes: bool, dry_run: bool, as_json: bool) -> None:
    """Put back what a host's file held before `import --move` or `install`.

    Your upstreams file keeps the servers. A file that was changed since is left alone, with a list of the changes,
    unless you add --keep-changes.
    """
    refuse_a_model(dry_run)
    receipts = _chosen(host, named)
    plan = plan_eject(receipts, keep_changes=keep_changes)
    host_of_file, change = written_host(plan.receipt.host), plan.change
    diff = redacted_diff(change)
    if not as_json:
        say_diff(change)
    if not dry_run:
        replace_bytes(change.path, change.after, was=change.before)
        receipts.drop_last()
    if as_json:
        fields = {"host": host_of_file.name, "file": str(change.path), "restored": not dry_run, "diff": diff}
        click.echo(json.dumps({**fields, "kept_changes": list(plan.kept), "dry_run": dry_run}))
        return
    if plan.kept:
        say("Kept, although it differs from what the file held before goat-mcp:")
        for line in plan.kept:
            say(f"  {line}")
    if dry_run:
        say("Nothing was written (--dry-run).")
        return
    is_as_it_was = change.after == plan.receipt.before
    say(f"{change.path} {'is as it was' if is_as_it_was else 'has its servers back'}.")
    click.echo(restart_hint(host_of_file))


def _chosen(host: str | None, named: Path | None) -> Receipts:
    found = written_files(StateDirectory.default(), "" if host is None else host_named(host).name)
    if named is not None:
        found = [receipts for receipts in found if receipts.file == named.absolute()]
    if not found:
        whose = f"{host}'s file" if host else "any host's file"
        raise ToolError(ErrorCode.NOT_FOUND, f"goat-mcp has not written {whose}", "There is nothing to put back.")
    if len(found) > 1:
        files = ", ".join(str(receipts.file) for receipts in found)
        raise ToolError(ErrorCode.AMBIGUOUS, f"goat-mcp has written several files: {files}", "Name one with --file.")
    return found[0]
