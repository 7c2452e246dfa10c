"""`goat-mcp rules`: the permission rules in force here and where each stands, and commands that change them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from goat_mcp.calls.approvals.record import Approval
from goat_mcp.calls.approvals.store import ApprovalStore
from goat_mcp.calls.permissions.mode import Effect
from goat_mcp.calls.permissions.remembered import RememberedRule
from goat_mcp.cli import flags
from goat_mcp.cli.host_changes import dry_run
from goat_mcp.cli.own_state import own_state
from goat_mcp.cli.settings_file import edit_fields, say_edit
from goat_mcp.cli.terminal import print_table, say
from goat_mcp.cli.terminal_user import refuse_if_run_by_a_model
from goat_mcp.cli.why import why
from goat_mcp.gateway.rules.edits import RuleChange, changed_rules, forgotten_rules, removed_rules
from goat_mcp.gateway.rules.listed import listed_rules, place_of, remembered_fields, remembered_rules
from goat_mcp.gateway.rules.words import meaning
from goat_mcp.settings.loading import load_settings
from goat_mcp.state.file_edit import edit_alone


@click.group(invoke_without_command=True)
@flags.selection
@flags.as_json
@click.pass_context
def rules(ctx: click.Context, as_json: bool, **selection: Any) -> None:
    """List the permission rules in force, deny first, and where each of them stands.

    Deny beats ask, ask beats allow, and what no rule matches is decided by the mode. What you allowed for a session is
    listed below, as long as its server runs.
    """
    if ctx.invoked_subcommand is None:
        _list(as_json, selection)


@rules.command("list")
@flags.selection
@flags.as_json
def list_rules(as_json: bool, **selection: Any) -> None:
    """The same as `goat-mcp rules`: the permission rules in force, deny first, and where each of them stands."""
    _list(as_json, selection)


def _list(as_json: bool, selection: dict[str, Any]) -> None:
    settings = flags.settings_from(**selection)
    flags.say_notices(settings)
    found = listed_rules(settings, _warn)
    granted = ApprovalStore(own_state()).session_grants()
    if as_json:
        click.echo(json.dumps([*(one.fields() for one in found), *(one for each in granted for one in _granted(each))]))
        return
    print_table(["no.", "effect", "rule", "where"], [one.row() for one in found])
    if granted:
        say("Allowed until the session ends; goat-mcp ui takes it back, in the view Rules:")
        rows = [[one["rule"], one["client"], one["workspace"]] for each in granted for one in _granted(each)]
        print_table(["rule", "client", "workspace"], rows)
    elif not found:
        say("No rules: the mode decides. Add one, e.g.: goat-mcp rules allow 'Bash(git status)'", err=True)


def _granted(approval: Approval) -> Iterator[dict[str, Any]]:
    """The rules that a person allowed for one running session."""
    request = approval.request
    for rule in approval.verdict.grants if approval.verdict is not None else ():
        yield {
            "number": None,
            "effect": "allow",
            "rule": rule,
            "origin": "session",
            "id": approval.id,
            "principal": request.principal,
            "directory": request.directory,
            "client": request.client,
            "workspace": request.workspace,
            "granted_at_s": approval.decided_at_s,
        }


rules.add_command(why, "test")


def _change(effect: Effect, what: str) -> None:
    """Add the command that writes rules of this effect."""

    @rules.command(
        effect.value, help=f"{what}\n\nThe rule is checked, the change is shown, and running servers follow."
    )
    @click.argument("texts", nargs=-1, required=True, metavar="RULE...")
    @click.option(
        "--project/--user",
        "in_project",
        default=False,
        help="Into the goat-mcp.yaml of the current directory, or into yours (the default).",
    )
    @click.option("--expires", metavar="SPAN", help="The rule ends after 30m, 1h, 7d or 2w.")
    @dry_run
    @flags.as_json
    def command(texts: Sequence[str], in_project: bool, expires: str | None, dry_run: bool, as_json: bool) -> None:
        if not dry_run:
            refuse_if_run_by_a_model("change what is allowed")
        with edit_alone():
            change = changed_rules(effect, texts, in_project=in_project, expires=expires, dry_run=dry_run)
        if as_json:
            click.echo(json.dumps(_fields(change, dry_run=dry_run)))
        else:
            _say(change, dry_run)


_change(Effect.ALLOW, "Let calls run without asking: goat-mcp rules allow 'Bash(npm run *)'.")
_change(Effect.ASK, "Ask about calls each time: goat-mcp rules ask 'Bash(git push *)'.")
_change(Effect.DENY, "Refuse calls in every mode: goat-mcp rules deny 'Read(./secrets/**)'.")


def _say(change: RuleChange, dry_run: bool) -> None:
    say_edit(change.edit, dry_run=dry_run)
    for line in change.lines(dry_run=dry_run):
        say(line)


@rules.command()
@click.argument("which", nargs=-1, required=True, metavar="RULE...")
@dry_run
@flags.as_json
def remove(which: Sequence[str], dry_run: bool, as_json: bool) -> None:
    """Take rules out.

    RULE is its text, the number that `goat-mcp rules` shows, or the id of a remembered one.
    """
    if not dry_run:
        refuse_if_run_by_a_model("change what is allowed")
    with edit_alone():
        changes, gone = removed_rules(which, dry_run=dry_run)
    forgotten = [] if dry_run else _forget([one.id for one in gone])
    if as_json:
        edits = [_fields(change, dry_run=dry_run) for change in changes]
        click.echo(json.dumps({"files": edits, "forgotten": [remembered_fields(one) for one in forgotten]}))
        return
    for change in changes:
        _say(change, dry_run)
    for one in gone if dry_run else forgotten:
        say(f"{'would be ' if dry_run else ''}forgotten: {one.rule.text}{place_of(one)}")


@rules.command()
@click.argument("which", nargs=-1, required=True, metavar="ID|RULE...")
@flags.workspace
@flags.as_json
def forget(which: Sequence[str], workspace: Sequence[str], as_json: bool) -> None:
    """Take back rules that "always" has written down for this workspace; running servers see it with the next call."""
    refuse_if_run_by_a_model("change what is allowed")
    gone = _forget(which, _workspace_here(workspace))
    if as_json:
        click.echo(json.dumps([remembered_fields(one) for one in gone]))
    for one in gone if not as_json else ():
        say(f"forgotten: {one.rule.text}{place_of(one)}")


def _forget(which: Sequence[str], workspace: Sequence[Path] = ()) -> list[RememberedRule]:
    return forgotten_rules(which, remembered_rules(workspace, _warn))


def _warn(event: str, **facts: Any) -> None:
    say(f"goat-mcp: {event}: {facts.get('path')}: {facts.get('problem')}", err=True)


def _fields(change: RuleChange, *, dry_run: bool) -> dict[str, Any]:
    """For `--json`."""
    return {
        "effect": change.effect.value if change.effect is not None else None,
        "rules": [
            {"rule": rule.text, "means": meaning(change.effect, rule), "until_s": rule.until_s}
            for rule in change.rules
            if change.effect is not None
        ],
        "removed": [{"effect": effect.value, "rule": text} for effect, text in change.removed],
        "ended": list(change.ended),
        "stricter": [
            {"effect": one.effect.value, "rule": one.rule.text, "origin": one.origin} for one in change.winners
        ],
        "notes": list(change.notes),
        **edit_fields(change.edit, dry_run=dry_run),
    }


def _workspace_here(named: Sequence[str]) -> Sequence[Path]:
    return load_settings({"workspace": named} if named else {}).workspace
