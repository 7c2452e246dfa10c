"""`goat-mcp undo`: put back what Write, Edit and NotebookEdit replaced, newest first."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Sequence
from typing import Any

import anyio
import click

from goat_mcp.cli import flags
from goat_mcp.cli.exit_codes import OK, TOOL_ERROR
from goat_mcp.cli.terminal import print_table, say
from goat_mcp.cli.terminal_user import (
    command_audit_log,
    command_workspace,
    record_refusals,
    refuse_if_run_by_a_model,
)
from goat_mcp.core.rights import LOCAL
from goat_mcp.files.changes.change import UNDO, Author, Change
from goat_mcp.files.changes.journal import UNLIMITED, Journal
from goat_mcp.files.changes.undo import Undo, UndoAttempt, undone_ids
from goat_mcp.state.directory import StateDirectory


@click.command()
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="The last N changes; 1 if you leave it out.")
@click.option("--call", "call_id", metavar="ID", help="All changes of one call; the start of its id is enough.")
@click.option("--list", "only_list", is_flag=True, help="List the changes, newest first, and change nothing.")
@click.option("--dry-run", is_flag=True, help="Say what would be undone, and change nothing.")
@flags.workspace
@flags.as_json
def undo(
    last: int | None, call_id: str | None, only_list: bool, dry_run: bool, workspace: Sequence[str], as_json: bool
) -> int:
    """Undo changes that tools made to files of this workspace.

    A file that has changed since is left alone and named. An undo is a change itself: its id undoes it again.

    Exit status: 0 done, 1 wrong usage, 5 something could not be undone.
    """
    if last is not None and call_id is not None:
        raise click.UsageError("--last and --call exclude each other")
    state = StateDirectory.default()
    journal = Journal(state, UNLIMITED, lambda path: say(f"damaged record set aside: {path}", err=True))
    undo_id = secrets.token_hex(8)
    here = command_workspace(workspace, state)
    author = Author(UNDO, undo_id, "terminal", "local")
    undo = Undo(journal, here, author)
    if only_list:
        _list(undo, last, call_id, as_json=as_json)
        return OK
    if not dry_run:
        with record_refusals(workspace, UNDO):
            refuse_if_run_by_a_model("undo changes")
    chosen = undo.last(last or 1) if call_id is None else undo.of_call(call_id)
    if dry_run:
        attempts = anyio.run(lambda: undo.run(chosen, dry_run=True))
    else:
        log = command_audit_log(workspace, here, state)
        attempts = anyio.run(undo.run_recorded, chosen, log, "terminal", "goat-mcp undo")
    if as_json:
        click.echo(json.dumps({"undo_id": undo_id, "changes": [_described(attempt) for attempt in attempts]}))
    else:
        for attempt in attempts:
            say(attempt.in_words)
        if any(attempt.outcome == "undone" for attempt in attempts):
            say(f"To take this back: goat-mcp undo --call {undo_id}")
        if not attempts:
            say("Nothing to undo in this workspace.")
    return TOOL_ERROR if any(attempt.outcome == "refused" for attempt in attempts) else OK


def _list(undo: Undo, last: int | None, call_id: str | None, *, as_json: bool) -> None:
    changes = undo.newest_first()
    undone = undone_ids(changes)
    shown = [change for change in changes if change.author.call_id.startswith(call_id or "")][:last]
    if as_json:
        click.echo(json.dumps([{**_fields(change), "undone": change.id in undone} for change in shown]))
        return
    rows = [
        [
            change.author.call_id,
            time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(change.at_s)),
            change.author.tool,
            change.kind,
            str(change.path),
            "undone" if change.id in undone else "cannot be undone" if change.not_kept else "",
            "" if change.author.principal == LOCAL else change.author.principal,
        ]
        for change in shown
    ]
    print_table(("call", "time", "tool", "change", "file", "note", "principal"), rows)
    if not shown:
        say("No changes in this workspace.")


def _described(attempt: UndoAttempt) -> dict[str, Any]:
    return {
        **_fields(attempt.change),
        "outcome": str(attempt.outcome),
        "why": attempt.why,
        "suggestion": attempt.suggestion,
    }


def _fields(change: Change) -> dict[str, Any]:
    return {
        "call_id": change.author.call_id,
        "principal": change.author.principal,
        "tool": change.author.tool,
        "at_s": change.at_s,
        "path": str(change.path),
        "kind": change.kind,
        "not_kept": change.not_kept,
    }
