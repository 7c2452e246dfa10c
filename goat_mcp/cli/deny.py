"""`goat-mcp deny`: the user says no to what waits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from goat_mcp.cli import flags
from goat_mcp.cli.approve import BY, decide_all, decide_at
from goat_mcp.cli.remote_server import RemoteServer, remote_options
from goat_mcp.cli.terminal_user import record_refusals, refuse_if_run_by_a_model

if TYPE_CHECKING:  # loaded when the command runs
    from goat_mcp.calls.approvals.record import Approval
    from goat_mcp.gateway.approvals.queue import ApprovalQueue, Decided


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.option("--reason", default="", metavar="TEXT", help="Why, or what to do instead; the model reads it.")
@remote_options
@flags.as_json
def deny(ids: Sequence[str], reason: str, server: str, token_file: Path | None, as_json: bool) -> int:
    """Deny what waits, by its id or the first letters of it."""
    with record_refusals((), "deny"):
        refuse_if_run_by_a_model("decide for the user")

    if server:
        decision = {"approve": False, "reason": reason}
        return decide_at(RemoteServer(server, token_file), ids, decision, as_json)

    async def decide(queue: ApprovalQueue, found: Approval) -> Decided:
        return await queue.deny(found.id, by=BY, reason=reason)

    return decide_all(ids, decide, as_json)
