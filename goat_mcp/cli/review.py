"""`goat-mcp review`: the changes that wait because `files.review_mode` is on, and the user's decision about them."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import click

from goat_mcp.calls.approvals.record import DecidedBefore, Kind, Verdict
from goat_mcp.cli import flags
from goat_mcp.cli.approve import BY
from goat_mcp.cli.exit_codes import OK, TOOL_ERROR
from goat_mcp.cli.terminal import escaped, print_table, say
from goat_mcp.cli.terminal_user import (
    command_audit_log,
    command_workspace,
    record_refusals,
    refuse_if_run_by_a_model,
)
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.resources import Announcements
from goat_mcp.files.changes.journal import UNLIMITED, Journal
from goat_mcp.files.changes.review import OWNER, TERMINAL, Review, StagedChanges, described
from goat_mcp.state.directory import StateDirectory

if TYPE_CHECKING:  # loaded when somebody decides
    from goat_mcp.gateway.approvals.change_source import ChangeSource
    from goat_mcp.gateway.approvals.queue import ApprovalQueue

MAX_DIFF_CHARS = 1_000_000


@click.group()
def review() -> None:
    """Show the changes that wait for you, and apply or reject them."""


@review.command("list")
@flags.workspace
@flags.as_json
def list_changes(workspace: Sequence[str], as_json: bool) -> None:
    """List the changes that wait in this workspace, oldest first."""
    here = _here(workspace)
    waiting = here.oldest_first(OWNER)
    if as_json:
        click.echo(json.dumps([described(staged) for staged in waiting]))
        return
    rows = [
        [
            staged.id,
            time.strftime("%Y-%m-%d %H:%M", time.localtime(staged.at_s)),
            staged.author.tool,
            str(staged.kind),
            str(staged.path),
            "" if staged.author.principal == OWNER else staged.author.principal,
        ]
        for staged in waiting
    ]
    print_table(("id", "proposed", "tool", "change", "file", "principal"), rows)
    elsewhere = len(here.queue.oldest_first()) - len(waiting)
    if elsewhere:
        say(f"{elsewhere} more in other workspaces; name one with --workspace.")
    elif not waiting:
        say("No changes wait for review.")


@review.command()
@click.argument("change", metavar="ID")
@flags.workspace
@flags.as_json
def show(change: str, workspace: Sequence[str], as_json: bool) -> None:
    """Print what one change would do to its file as it is now."""
    here = _here(workspace)
    staged = here.find(change, OWNER)
    diff = here.diff(staged, MAX_DIFF_CHARS)
    click.echo(json.dumps({**described(staged), "diff": diff}) if as_json else escaped(diff))


@review.command()
@click.argument("changes", nargs=-1, metavar="[ID]...")
@click.option("--all", "every", is_flag=True, help="All that wait in this workspace now.")
@flags.workspace
@flags.as_json
def apply(changes: Sequence[str], every: bool, workspace: Sequence[str], as_json: bool) -> int:
    """Write changes to their files. One whose file has changed since is refused, and keeps waiting."""
    return _decide(changes, workspace, every=every, apply=True, as_json=as_json)


@review.command()
@click.argument("changes", nargs=-1, metavar="[ID]...")
@click.option("--all", "every", is_flag=True, help="All that wait in this workspace now.")
@flags.workspace
@flags.as_json
def reject(changes: Sequence[str], every: bool, workspace: Sequence[str], as_json: bool) -> int:
    """Drop changes; their files stay as they are."""
    return _decide(changes, workspace, every=every, apply=False, as_json=as_json)


def _decide(changes: Sequence[str], workspace: Sequence[str], *, every: bool, apply: bool, as_json: bool) -> int:
    if every == bool(changes):
        raise click.UsageError("name the changes, or --all")
    with record_refusals(workspace, f"review {'apply' if apply else 'reject'}"):
        refuse_if_run_by_a_model("decide about changes")
        if apply and not sys.stdin.isatty():
            raise ToolError(
                ErrorCode.PERMISSION,
                "applying changes needs a person at a terminal",
                f"Run it there: goat-mcp review apply {'--all' if every else ' '.join(changes)}",
            )
    here = _here(workspace)
    recorded = replace(here, record=command_audit_log(workspace, here.workspace, StateDirectory.default()))
    ids = [staged.id for staged in here.oldest_first(OWNER)] if every else list(dict.fromkeys(changes))
    outcomes = anyio.run(_all, recorded, ids, apply)
    if as_json:
        click.echo(json.dumps(outcomes))
    for outcome in outcomes if not as_json else ():
        say(" ".join(filter(None, (outcome["id"], outcome["outcome"], outcome["message"]))))
    if not outcomes and not as_json:
        say("No changes wait for review.")
    return TOOL_ERROR if any(outcome["outcome"] == "refused" for outcome in outcomes) else OK


async def _all(here: Review, ids: Sequence[str], apply: bool) -> list[dict[str, str]]:
    from goat_mcp.gateway.approvals.user_queue import UserQueue

    user = UserQueue(StateDirectory.default())
    changes = user.decide_changes_with(here)
    outcomes: list[dict[str, str]] = []
    for id in ids:
        try:
            done = await _decided(user.queue, changes, here, id, apply)
            outcome, _, message = done.partition(" ")
        except ToolError as refused:
            outcome, message = "refused", f"{refused.message}. {refused.suggestion}"
        outcomes.append({"id": id, "outcome": outcome, "message": message})
    return outcomes


async def _decided(queue: ApprovalQueue, changes: ChangeSource, here: Review, id: str, apply: bool) -> str:
    """Raises `DecidedBefore`, with whoever was first, and all that `Review` raises."""
    seen_at_s = time.time()
    try:
        staged = await anyio.to_thread.run_sync(here.find, id, OWNER)
    except ToolError as gone:
        what = f"review {'apply' if apply else 'reject'}"
        async with here.record.user_action(what, {"change": id}, TERMINAL.context(), TERMINAL.rule(id)) as refused:
            refused.append(str(gone.code))
        before = await anyio.to_thread.run_sync(queue.store.newest_of, Kind.CHANGE, id)
        if before is not None and before.is_decided:
            raise DecidedBefore(before) from None
        raise
    request = await anyio.to_thread.run_sync(changes.request, staged)
    return (await queue.decide(request, Verdict(approved=apply), seen_at_s=seen_at_s, by=BY)).done


def _here(workspace: Sequence[str]) -> Review:
    state = StateDirectory.default()
    journal = Journal(state, UNLIMITED)
    return Review(StagedChanges(state), journal, command_workspace(workspace, state), Announcements())
