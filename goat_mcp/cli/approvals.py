"""`goat-mcp approvals`: everything that waits for the user, of all servers, and what they decided."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import click

from goat_mcp.calls.approvals.record import Approval, Kind, Status
from goat_mcp.calls.approvals.wording import CONSEQUENCES, choice_title, lines_of, outcome
from goat_mcp.cli import flags
from goat_mcp.cli.exit_codes import OK
from goat_mcp.cli.notify_trial import send_test_messages
from goat_mcp.cli.own_state import own_state
from goat_mcp.cli.remote_server import RemoteServer, remote_options
from goat_mcp.cli.terminal import escaped, print_table, say
from goat_mcp.core.durations import span
from goat_mcp.gateway.approvals.outcome import results_of
from goat_mcp.gateway.approvals.viewer import approval_fields
from goat_mcp.state.directory import StateDirectory

if TYPE_CHECKING:  # loaded when the command runs
    from goat_mcp.gateway.approvals.queue import ApprovalQueue

WATCH_S = 0.5
LATELY = 50
MAX_DIFF_LINES = 100_000
_CLEAR = "\x1b[2J\x1b[H"


@click.command()
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--all", "show_all", is_flag=True, help="Those decided lately, too: by whom, and what became of them.")
@click.option("--watch", is_flag=True, help="Show what comes as it comes, until Ctrl-C.")
@click.option("--test-notify", is_flag=True, help="Send a test message to everybody in approval.notify.")
@remote_options
@flags.as_json
def approvals(
    ids: Sequence[str],
    show_all: bool,
    watch: bool,
    test_notify: bool,
    server: str,
    token_file: Path | None,
    as_json: bool,
) -> int:
    """List what waits for your decision: calls, plans, changes of files, changed servers, logins, project settings.

    With ID, or the first letters of it, all of one: arguments, diff and what you can choose. With --server what waits
    at a goat-mcp elsewhere: yours, or as its administrator everybody's.
    """
    if server:
        if watch or test_notify:
            raise click.UsageError("--server lists once; --watch and --test-notify are about this machine")
        return _of_server(RemoteServer(server, token_file), ids, show_all, as_json)
    from goat_mcp.gateway.approvals.user_queue import approval_queue

    if (watch or test_notify) and (ids or show_all or (watch and test_notify)):
        raise click.UsageError(f"--{'watch' if watch else 'test-notify'} stands alone, or with --json")
    if test_notify:
        return send_test_messages(as_json=as_json)
    state = own_state()
    queue = approval_queue(state)
    if watch:
        anyio.run(_watch, queue, state, as_json)
        return OK
    waiting = anyio.run(queue.waiting)
    if ids:
        _show([queue.store.find(id) for id in dict.fromkeys(ids)], state, as_json)
        return OK
    decided = queue.store.newest_first(LATELY) if show_all else []
    if as_json:
        results = results_of(state, decided)
        document = {"waiting": [approval_fields(one) for one in waiting]}
        if show_all:
            document["decided"] = [approval_fields(one, results) for one in decided]
        click.echo(json.dumps(document))
        return OK
    _print_waiting(waiting)
    if show_all:
        _print_decided(decided, state)
    return OK


def _of_server(server: RemoteServer, ids: Sequence[str], show_all: bool, as_json: bool) -> int:
    if ids:
        click.echo(json.dumps([server.one(id) for id in dict.fromkeys(ids)], indent=None if as_json else 2))
        return OK
    document = server.listed()
    if as_json:
        click.echo(json.dumps(document if show_all else {"waiting": document["waiting"]}))
        return OK
    columns = ("short_id", "kind", "title", "principal", "client", "risk")
    parts = (("waiting", "Waiting:"), ("decided", "Decided lately:")) if show_all else (("waiting", "Waiting:"),)
    for name, heading in parts:
        if not document[name]:
            say(f"{heading} nothing")
            continue
        say(heading)
        print_table(
            ("id", "kind", "what", "of", "client", "risk"),
            [[_one_line(str(one[column])) for column in columns] for one in document[name]],
        )
    return OK


def _print_waiting(waiting: Sequence[Approval]) -> None:
    if not waiting:
        say("Nothing waits for you.")
        return
    print_table(_HEADERS, [_row(one) for one in waiting])
    if sys.stdout.isatty():
        say("See one: goat-mcp approvals ID   Decide: goat-mcp approve ID   goat-mcp deny ID --reason TEXT")


_HEADERS = ("id", "age", "kind", "what", "client", "risk", "expires in")


def _row(approval: Approval) -> list[str]:
    request, now_s = approval.request, time.time()
    expires = span(request.expires_at_s - now_s) if request.expires_at_s else ""
    what = _one_line(request.title)
    return [
        approval.short_id,
        span(now_s - approval.at_s),
        request.kind.value,
        what,
        request.client,
        request.risk,
        expires,
    ]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _print_decided(decided: Sequence[Approval], state: StateDirectory) -> None:
    results = results_of(state, decided)
    rows = [
        [one.short_id, one.request.kind.value, _one_line(one.request.title), outcome(one), results.get(one.id, "")]
        for one in decided
    ]
    if rows:
        say("Decided lately:")
    print_table(("id", "kind", "what", "decision", "result"), rows)


def _show(found: Sequence[Approval], state: StateDirectory, as_json: bool) -> None:
    results = results_of(state, found)
    if as_json:
        click.echo(json.dumps([approval_fields(one, results) for one in found]))
        return
    for at, one in enumerate(found):
        if at:
            click.echo()
        _print_whole(one, results.get(one.id, ""))


def _print_whole(approval: Approval, result: str) -> None:
    request = approval.request
    said = "; ".join(filter(None, (outcome(approval), result)))
    say(f"{approval.id} ({request.kind.value}, {span(time.time() - approval.at_s)} old): {said}")
    for line in lines_of(request, diff_lines=MAX_DIFF_LINES):
        click.echo(escaped(line))
    if approval.status is not Status.WAITING:
        return
    if about := CONSEQUENCES.get(request.kind):
        say(about)
    if command := request.facts.get("command") if request.kind is Kind.LOGIN else None:
        say(f"Log in: {command}")
        say(f"Deny: goat-mcp deny {approval.short_id}")
        return
    say(f"Approve: goat-mcp approve {approval.short_id}")
    for choice in request.choices:
        say(f"  --scope {choice.scope}: {choice.title}")
        if choice.may_remember:
            say(f"  --scope {choice.scope} --always: {choice_title(choice, remember=True)}")
        if choice.prefix:
            say(f"    another prefix: --prefix {choice.prefix!r}")
    say(f"Deny: goat-mcp deny {approval.short_id} --reason TEXT")


async def _watch(queue: ApprovalQueue, state: StateDirectory, as_json: bool) -> None:
    """On a terminal the whole list, again at each change; elsewhere a line for each that comes, and for each that is
    decided."""
    is_live = sys.stdout.isatty() and not as_json
    before: dict[str, Approval] = {}
    shown: object = None
    while True:
        waiting = {one.id: one for one in await queue.waiting()}
        if is_live:
            seen = [_row(one) for one in waiting.values()]
            if seen != shown:
                click.echo(_CLEAR, nl=False)
                _print_waiting(list(waiting.values()))
                say("New ones appear here. Ctrl-C ends this.")
            shown = seen
        else:
            for one in waiting.values():
                if one.id not in before:
                    _tell(one, state, as_json)
            for id in before.keys() - waiting.keys():
                _tell(await anyio.to_thread.run_sync(queue.store.find, id), state, as_json)
        sys.stdout.flush()
        before = waiting
        await anyio.sleep(WATCH_S)


def _tell(approval: Approval, state: StateDirectory, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(approval_fields(approval, results_of(state, [approval]))))
        return
    request = approval.request
    click.echo(escaped("\t".join((approval.short_id, request.kind.value, _one_line(request.title), outcome(approval)))))
