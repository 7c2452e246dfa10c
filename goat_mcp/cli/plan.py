"""`goat-mcp plan`: what models have proposed in plan mode, and the user's decision if no form could ask for it."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict

import anyio
import click

from goat_mcp.calls.approvals.record import DecidedBefore, Kind, Verdict
from goat_mcp.cli import flags
from goat_mcp.cli.approve import BY
from goat_mcp.cli.own_state import own_state
from goat_mcp.cli.terminal import escaped, print_table, say
from goat_mcp.cli.terminal_user import refuse_if_run_by_a_model
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.rights import LOCAL
from goat_mcp.state.plans import Plan, PlanStatus, PlanStore, all_plans, find_plan


@click.group()
def plan() -> None:
    """Show the plans that wait for you, and approve or reject them."""


@plan.command("list")
@flags.as_json
def list_plans(as_json: bool) -> None:
    """List plans of all principals, newest first: name, status, time, principal."""
    plans = [found for _, found in all_plans(own_state())]
    if as_json:
        click.echo(json.dumps([_fields(found) for found in plans]))
        return
    rows = [
        [
            found.name,
            str(found.status),
            time.strftime("%Y-%m-%d %H:%M", time.localtime(found.presented_at_s)),
            found.principal,
        ]
        for found in plans
    ]
    print_table(("plan", "status", "proposed", "principal"), rows)
    if not plans:
        say("No plans.", err=True)


@plan.command()
@click.argument("name")
@flags.as_json
def show(name: str, as_json: bool) -> None:
    """Print one plan."""
    store, found = _find(name)
    if as_json:
        click.echo(json.dumps({**_fields(found), "text": store.text(found)}))
    else:
        click.echo(escaped(store.text(found)))


@plan.command()
@click.argument("name")
@flags.as_json
def approve(name: str, as_json: bool) -> None:
    """Approve a plan; its session leaves plan mode with its next call."""
    _decide(name, approved=True, feedback="", as_json=as_json)


@plan.command()
@click.argument("name")
@click.option("--feedback", default="", metavar="TEXT", help="What should be different.")
@flags.as_json
def reject(name: str, feedback: str, as_json: bool) -> None:
    """Reject a plan; its session keeps planning."""
    _decide(name, approved=False, feedback=feedback, as_json=as_json)


def _decide(name: str, *, approved: bool, feedback: str, as_json: bool) -> None:
    refuse_if_run_by_a_model("decide about plans")
    if approved and not sys.stdin.isatty():
        raise ToolError(
            ErrorCode.PERMISSION,
            "approving a plan needs a person at a terminal",
            f"Run it there: goat-mcp plan approve {name}",
        )
    found = anyio.run(_decided, name, Verdict(approved, reason=feedback))
    if as_json:
        click.echo(json.dumps({"name": name, "decision": "approved" if approved else "rejected"}))
        return
    whose = "" if found.principal == LOCAL else f" (of principal {escaped(found.principal)})"
    say(f"{name} {'approved' if approved else 'rejected'}{whose}")


async def _decided(name: str, verdict: Verdict) -> Plan:
    """Raises `DecidedBefore`, with whoever was first."""
    from goat_mcp.gateway.approvals.user_queue import UserQueue

    seen_at_s = time.time()
    user = UserQueue(own_state())
    store, found = _find(name)
    if found.status is not PlanStatus.WAITING:
        before = user.queue.store.newest_of(Kind.PLAN, name)
        if before is not None and before.is_decided:
            raise DecidedBefore(before)
        how = "rejected" if found.status is PlanStatus.REJECTED else "approved"
        raise ToolError(ErrorCode.INPUT, f"plan {name} was {how} before", "The first decision stands.")
    request = user.plans.request(store, found)
    await user.queue.decide(request, verdict, seen_at_s=seen_at_s, by=BY)
    return found


def _find(name: str) -> tuple[PlanStore, Plan]:
    found = find_plan(own_state(), name)
    if found is None:
        raise ToolError(ErrorCode.NOT_FOUND, f"no plan {name!r}", "See goat-mcp plan list.")
    return found


def _fields(plan: Plan) -> dict[str, object]:
    return asdict(plan)
