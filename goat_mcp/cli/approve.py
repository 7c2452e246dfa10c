"""`goat-mcp approve`: the user says yes to what waits. `goat-mcp deny` shares how several are decided."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import click

from goat_mcp.calls.approvals.record import Approval, DecidedBefore
from goat_mcp.cli import flags
from goat_mcp.cli.exit_codes import AUTH, OK, TOOL_ERROR
from goat_mcp.cli.own_state import own_state
from goat_mcp.cli.remote_server import RemoteServer, remote_options
from goat_mcp.cli.terminal import say
from goat_mcp.cli.terminal_user import record_refusals, refuse_if_run_by_a_model
from goat_mcp.core.errors import ErrorCode, ToolError

if TYPE_CHECKING:  # loaded when the command runs
    from goat_mcp.gateway.approvals.queue import ApprovalQueue, Decided

BY = "terminal"
_ONCE, _ALWAYS = "once", "always"


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.option("--scope", default="", metavar="SCOPE", help="How much to allow; goat-mcp approvals ID lists it.")
@click.option("--always", is_flag=True, help="Keep it for later sessions, too.")
@click.option("--prefix", default="", metavar="WORDS", help="The beginning of the commands to allow.")
@remote_options
@flags.as_json
def approve(
    ids: Sequence[str],
    scope: str,
    always: bool,
    prefix: str,
    server: str,
    token_file: Path | None,
    as_json: bool,
) -> int:
    """Approve what waits, by its id or the first letters of it. Only you can do this, at a terminal.

    A call that still waits runs at once. Another one runs when it is made again, once.
    """
    with record_refusals((), "approve"):
        refuse_if_run_by_a_model("approve what waits for the user")
        if not sys.stdin.isatty():
            raise ToolError(
                ErrorCode.PERMISSION,
                "approving needs a person at a terminal",
                f"Run it there: goat-mcp approve {' '.join(ids)}",
            )

    if server:
        wanted = scope or (_ALWAYS if always else _ONCE)
        decision = {"approve": True, "scope": wanted, "remember": always and wanted != _ALWAYS, "prefix": prefix}
        return decide_at(RemoteServer(server, token_file), ids, decision, as_json)

    async def decide(queue: ApprovalQueue, found: Approval) -> Decided:
        wanted = scope or _meant_scope(found, always, prefix)
        remember = always and wanted != _ALWAYS
        return await queue.approve(found.id, scope=wanted, remember=remember, prefix=prefix, by=BY)

    return decide_all(ids, decide, as_json)


def _meant_scope(found: Approval, always: bool, prefix: str) -> str:
    """What they mean who name no scope."""
    if prefix:
        return next((choice.scope for choice in found.request.choices if choice.prefix), _ONCE)
    return _ALWAYS if always else _ONCE


Decide = Callable[["ApprovalQueue", Approval], Awaitable["Decided"]]


def decide_all(ids: Sequence[str], decide: Decide, as_json: bool) -> int:
    """Decide about each, also if another one is refused. The exit code."""
    return _reported(anyio.run(_outcomes, list(dict.fromkeys(ids)), decide), as_json)


def decide_at(server: RemoteServer, ids: Sequence[str], decision: Mapping[str, Any], as_json: bool) -> int:
    """The same at a goat-mcp elsewhere."""
    outcomes: list[dict[str, Any]] = []
    for id in dict.fromkeys(ids):
        try:
            decided = server.decide(id, decision)
            outcomes.append({"id": id, "outcome": decided["outcome"], "message": decided["message"], "code": ""})
        except ToolError as refused:
            message = " ".join(filter(None, (f"{refused.message}.", refused.suggestion)))
            outcomes.append({"id": id, "outcome": "refused", "message": message, "code": refused.code})
    return _reported(outcomes, as_json)


def _reported(outcomes: Sequence[Mapping[str, Any]], as_json: bool) -> int:
    if as_json:
        click.echo(json.dumps([{name: one[name] for name in one if name != "code"} for one in outcomes]))
    for one in outcomes if not as_json else ():
        is_refused = one["outcome"] == "refused"
        say(f"{one['id']} {'refused: ' if is_refused else ''}{one['message']}", err=is_refused)
    refused = {one["code"] for one in outcomes if one["outcome"] == "refused"}
    if refused == {ErrorCode.AUTH}:
        return AUTH
    return TOOL_ERROR if refused else OK


async def _outcomes(ids: Sequence[str], decide: Decide) -> list[dict[str, Any]]:
    from goat_mcp.gateway.approvals.user_queue import approval_queue

    queue = approval_queue(own_state())
    await queue.waiting()  # what has come since somebody looked last has a record, too
    outcomes: list[dict[str, Any]] = []
    for id in ids:
        try:
            found = await anyio.to_thread.run_sync(queue.store.find, id)
            decided = await decide(queue, found)
            outcomes.append(
                {"id": found.short_id, "outcome": decided.approval.status.value, "message": decided.done, "code": ""}
            )
        except ToolError as refused:
            by = refused.approval.decided_by if isinstance(refused, DecidedBefore) else ""
            message = " ".join(filter(None, (f"{refused.message}.", refused.suggestion)))
            outcomes.append(
                {"id": id, "outcome": "refused", "message": message, "decided_by": by, "code": refused.code}
            )
    return outcomes
