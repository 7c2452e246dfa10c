"""What `goat-mcp import` shows: notes and differences for each host, and a table of all servers at the end."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

import click

from goat_mcp.cli.host_changes import restart_hint, say_diff
from goat_mcp.cli.hosts.host import WorkspaceSource
from goat_mcp.cli.hosts.importing import ImportPlan, SourcePlan
from goat_mcp.cli.hosts.merging import ImportOutcome, MergedServer
from goat_mcp.cli.hosts.own_entry import NO_OPTIONS
from goat_mcp.cli.hosts.plain_secrets import PlainSecret
from goat_mcp.cli.hosts.sources import Unreadable
from goat_mcp.cli.install_options import settings_name_workspace
from goat_mcp.cli.terminal import escaped, print_table
from goat_mcp.cli.workspace_choice import workspace_note
from goat_mcp.core.redaction import Redactor
from goat_mcp.files.changes.redacted_diff import redacted_diff

_WORDS = {
    ImportOutcome.IMPORTED: "imported",
    ImportOutcome.PRESENT: "already there",
    ImportOutcome.KEPT: "skipped",
    ImportOutcome.ITSELF: "skipped",
}


def import_document(plan: ImportPlan, broken: Sequence[Unreadable], dry_run: bool) -> dict[str, Any]:
    """For `--json`."""
    document = {
        "into": str(plan.into.path),
        "changed": plan.into.is_one and not dry_run,
        "dry_run": dry_run,
        "hosts": [_host_fields(plan, one, dry_run) for one in plan.sources],
        "broken": [one.problem.message for one in broken],
        "skipped_files": [
            {
                "host": one.host.name,
                "file": None if one.path is None else str(one.path),
                "why": one.problem.message,
                "next": _after_fixing(one),
            }
            for one in broken
        ],
    }
    return Redactor().tree(document, by_name=False)


def print_import(plan: ImportPlan, broken: Sequence[Unreadable], dry_run: bool) -> None:
    """For people."""
    redactor = Redactor()
    for one in plan.sources:
        click.echo(f"{one.source.host.title}: {escaped(str(one.source.file.path))}")
        for server in one.servers:
            for note in _notes(server):
                click.echo(escaped(f"  {server.name}: {redactor.text(note)}"))
        if not one.servers:
            click.echo("  no servers")
        if one.source.host.unseen and any(server.outcome is ImportOutcome.IMPORTED for server in one.servers):
            click.echo(f"  {one.source.host.unseen}: look at what came")
        for folder in one.source.projects:
            click.echo(escaped(f"  more for one project: --project {folder}"))
        if one.change is not None and one.change.is_one:
            say_diff(one.change)
    for one in broken:
        click.echo(escaped(f"{one.host.title}: {one.path or 'its file'}\n  skipped: {redactor.text(one.why)}"))
    _print_written(plan, dry_run)
    rows = [_row(plan, one, server, redactor) for one in plan.sources for server in one.servers]
    rows += [["(its file)", one.host.name, "skipped", redactor.text(one.why), _after_fixing(one)] for one in broken]
    print_table(["server", "host", "result", "why", "next"], rows)


def _host_fields(plan: ImportPlan, one: SourcePlan, dry_run: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "host": one.source.host.name,
        "file": str(one.source.file.path),
        "project": None if one.source.project is None else str(one.source.project),
        "servers": [
            {
                "name": server.name,
                "outcome": server.outcome.value,
                "as": server.to or None,
                "notes": list(server.notes),
                "secrets_in_plain_text": [secret.where for secret in _plain(plan, server)],
                "next": _next(plan, one, server),
            }
            for server in one.servers
        ],
        "other_projects": one.source.projects,
        "unseen": one.source.host.unseen or None,
    }
    if one.change is not None:
        fields |= {"moved": one.change.is_one and not dry_run, "diff": redacted_diff(one.change)}
    return fields


def _notes(server: MergedServer) -> Sequence[str]:
    """Those that the table does not show."""
    return server.notes if server.outcome is ImportOutcome.IMPORTED else server.notes[1:]


def _row(plan: ImportPlan, one: SourcePlan, server: MergedServer, redactor: Redactor) -> list[str]:
    why = "" if server.outcome is ImportOutcome.IMPORTED else redactor.text("".join(server.notes[:1]))
    name = f"{server.name} as {server.to}" if server.to not in ("", server.name) else server.name
    return [name, one.source.host.name, _WORDS[server.outcome], why, _next(plan, one, server)]


def _next(plan: ImportPlan, one: SourcePlan, server: MergedServer) -> str:
    """The command, or what to do before it."""
    command = f"goat-mcp import {one.source.host.name}"
    if _plain(plan, server):
        return f"{command} --secrets move"
    if server.outcome is ImportOutcome.IMPORTED:
        is_off = any(note.startswith("disabled: true") for note in server.notes)
        return f"goat-mcp {'enable' if is_off else 'list --server'} {shlex.quote(server.to)}"
    if server.outcome is ImportOutcome.KEPT and "--project" in "".join(server.notes):
        return f"{command} --project DIR"
    if server.outcome is ImportOutcome.KEPT:
        return f"change the entry, then: {command}"
    return ""


def _plain(plan: ImportPlan, server: MergedServer) -> list[PlainSecret]:
    """The secrets of this server that stay in plain text."""
    every = (*plan.new_secrets, *plan.old_secrets)
    return [secret for secret in every if secret.server == server.to and secret not in plan.stored]


def _after_fixing(one: Unreadable) -> str:
    return f"fix the file, then: goat-mcp import {one.host.name}"


def _print_written(plan: ImportPlan, dry_run: bool) -> None:
    new = sum(server.outcome is ImportOutcome.IMPORTED for one in plan.sources for server in one.servers)
    moved = [one for one in plan.sources if one.change is not None and one.change.is_one]
    if dry_run:
        click.echo("Nothing was written (--dry-run).")
        return
    path = escaped(str(plan.into.path))
    click.echo(f"{new} new in {path}" if new else f"Nothing new for {path}")
    if plan.stored:
        what = "1 secret is" if len(plan.stored) == 1 else f"{len(plan.stored)} secrets are"
        click.echo(f"{what} stored now; goat-mcp secret list shows the names")
    for one in moved:
        click.echo(f"{one.source.host.title} starts goat-mcp now. Undo it with: goat-mcp eject {one.source.host.name}")
        is_silent = one.source.host.workspace is WorkspaceSource.NONE and not settings_name_workspace()
        if is_silent and (note := workspace_note(one.source, NO_OPTIONS)):
            click.echo(escaped(note))
        click.echo(restart_hint(one.source.host))
