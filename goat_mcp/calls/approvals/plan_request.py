"""The record of a plan that waits for the user."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from goat_mcp.calls.approvals.record import Kind, Request
from goat_mcp.state.plans import Plan

MAX_PLAN_CHARS = 100_000


def plan_subject(name: str, text: str) -> str:
    """A plan with exactly this text: another text needs another decision."""
    return f"{name}:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def plan_request(plan: Plan, text: str, scope_id: str, shown: Callable[[str], str], client: str = "") -> Request:
    """`text` is what is on disk now. `shown` makes visible what hides, and takes secrets out."""
    subject = plan_subject(plan.name, text)
    first = next((line.strip("# ") for line in text.splitlines() if line.strip("# ")), plan.name)
    return Request(
        kind=Kind.PLAN,
        subject=subject,
        title=f"Plan: {shown(first)[:200]}",
        principal=plan.principal,
        session=plan.session,
        scope_id=scope_id,
        client=client,
        tool="ExitPlanMode",
        arguments=(("plan", shown(text[:MAX_PLAN_CHARS])),),
        asked_by="plan mode",
        args_sha256=subject.rpartition(":")[2],
        facts={"plan": plan.name, "file": plan.file_path},
    )
