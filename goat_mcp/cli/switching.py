"""`goat-mcp enable` and `disable`: what both say of what they switch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

from goat_mcp.cli import exit_codes
from goat_mcp.cli.host_changes import refuse_a_model
from goat_mcp.cli.own_file import say_change
from goat_mcp.cli.running_servers import say_followers
from goat_mcp.cli.settings_file import edit_fields, say_edit
from goat_mcp.cli.terminal import say
from goat_mcp.files.changes.redacted_diff import redacted_diff
from goat_mcp.gateway.status.running_servers import fields, readers_of
from goat_mcp.gateway.switching import Kind, Switched, switched


def switch(names: Sequence[str], *, on: bool, kind: Kind | None, project: bool, dry_run: bool, as_json: bool) -> int:
    """Switch all of them on or off, or none. Raises `ToolError`."""
    refuse_a_model(dry_run, "switch servers and tools on or off")
    done = switched(names, on=on, kind=kind, project=project, dry_run=dry_run)
    edit = done.edit
    if as_json:
        click.echo(json.dumps(_document(done, on=on, dry_run=dry_run)))
        return exit_codes.OK
    for change in done.changes:
        if change.is_one:
            say_change(change, dry_run=dry_run)
            if not dry_run and (edit is None or not edit.change.is_one):
                say_followers(readers_of(change.path))
        else:
            say(f"{change.path} says so already.")
    if edit is not None:
        say_edit(edit, dry_run=dry_run)
    for note in done.notes:
        say(f"goat-mcp: {note}", err=True)
    return exit_codes.OK


def _document(done: Switched, *, on: bool, dry_run: bool) -> dict[str, Any]:
    wanted, edit = done.wanted, done.edit
    things = [{"kind": "server", "name": one.name, "file": str(one.file.path)} for one in wanted.servers]
    if edit is not None:
        things += [
            {"kind": "tool" if spec is not None else "selection", "name": word, "file": str(edit.path)}
            for word, spec in wanted.selections
        ]
    files: list[dict[str, Any]] = [
        {
            "file": str(change.path),
            "changed": change.is_one and not dry_run,
            "diff": redacted_diff(change),
            "running": [] if dry_run else fields(readers_of(change.path)),
        }
        for change in done.changes
    ]
    if edit is not None:
        told = edit_fields(edit, dry_run=dry_run)
        files.append({key: told[key] for key in ("file", "changed", "diff", "running")})
    return {"enabled": on, "switched": things, "files": files, "notes": list(done.notes), "dry_run": dry_run}
