"""What commands say of an edit of a settings file: on the terminal, and as JSON."""

from __future__ import annotations

import shlex
from typing import Any

import click

from goat_mcp.cli.own_file import say_change
from goat_mcp.cli.running_servers import say_followers
from goat_mcp.cli.terminal import say
from goat_mcp.files.changes.redacted_diff import redacted_diff
from goat_mcp.gateway.settings_edit import SettingsEdit
from goat_mcp.gateway.status.running_servers import fields, readers_of, who
from goat_mcp.state.trust import FILE_NAME

in_project = click.option(
    "--project", "in_project", is_flag=True, help=f"The {FILE_NAME} of the current directory in place of yours."
)


def say_edit(edit: SettingsEdit, *, dry_run: bool, are_followed: bool = True) -> None:
    """The diff, where it was written, and who follows it."""
    if not edit.change.is_one:
        say(f"{edit.path} says so already.")
        return
    say_change(edit.change, dry_run=dry_run)
    if dry_run:
        return
    if edit.in_project and not edit.is_trusted:
        say(
            "Of a project's file only what it denies counts until you trust it: "
            f"goat-mcp trust {shlex.quote(str(edit.path.parent))}"
        )
    elif are_followed or not (readers := readers_of(edit.path)):
        say_followers(readers_of(edit.path))
    else:
        say(f"Read at the next start only, of {', '.join(map(who, readers))}")


def edit_fields(edit: SettingsEdit, *, dry_run: bool) -> dict[str, Any]:
    """For `--json`."""
    return {
        "file": str(edit.path),
        "changed": edit.change.is_one and not dry_run,
        "dry_run": dry_run,
        "diff": redacted_diff(edit.change),
        "running": [] if dry_run else fields(readers_of(edit.path)),
    }
