"""How a request for a decision reads: the same words in the client's form, on the command line, on the page and in
messages. Texts of a `Request` are visible and without secrets already."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from goat_mcp.calls.approvals.record import Approval, Choice, Kind, Request, Status, Verdict, clock_time
from goat_mcp.core.durations import span
from goat_mcp.core.tool import NO_DIFF
from goat_mcp.files.documents.visible_text import shown_path

DIFF_LINES = 60
"""How much of a diff a form shows."""
ONCE, DENY = "Allow once", "Deny"
FOR_SESSION, ALWAYS = "Allow for this session", "Always allow"
REASON = "Reason, if you deny"
CONSEQUENCES: Mapping[Kind, str] = {
    Kind.PLAN: "Approve: its session leaves plan mode. Deny: it keeps planning, and reads your reason.",
    Kind.CHANGE: "Approve: the change is written to the file. Deny: it is dropped, and the file stays as it is.",
    Kind.DEFINITION: "Approve: exactly what is shown here is pinned and can be used. "
    "Deny: it stays as it was pinned; you are asked again if it changes.",
    Kind.LOGIN: "The request goes away once you have logged in. "
    "Deny: the server stays without a login; you are asked again the next time.",
    Kind.PROJECT: "Approve: exactly this content is trusted and takes effect. "
    "Deny: only what it denies is in force; you are asked again if it changes.",
}
"""What a decision brings about. A call has its choices instead."""
READS_REASON = (Kind.CALL, Kind.PLAN)
"""The reason for a denial reaches a model."""
CAREFUL_FACT = "careful"
"""The member of a request's facts with the warnings about a tool's definition."""
_DECIDED = {Status.APPROVED: "approved", Status.DENIED: "denied"}


def headline(request: Request) -> str:
    """The question itself, on one line."""
    asked = f"Allow {request.tool}?" if request.kind is Kind.CALL else request.title
    return f"{asked} ({request.asked_by})" if request.asked_by else asked


def facts_of(request: Request) -> tuple[tuple[str, str], ...]:
    """What a person should know besides the arguments and the diff: labels and texts of one line each."""
    careful: Sequence[str] = request.facts.get(CAREFUL_FACT, ())
    risk = ": ".join(filter(None, (request.risk, ", ".join(request.why))))
    rows = [
        ("Careful", f"its definition {'; '.join(careful)}" if careful else ""),
        ("Risk", risk),
        ("Client", request.client),
        ("Directory", shown_path(request.directory)),
    ]
    return tuple((label, text) for label, text in rows if text)


def lines_of(request: Request, *, diff_lines: int = DIFF_LINES) -> tuple[str, ...]:
    """All of a request as text: the question, the facts, the arguments, the diff."""
    rows = [line for label, text in (*facts_of(request), *request.arguments) for line in _indented(f"{label}: {text}")]
    return (headline(request), *rows, *_diff(request.diff, diff_lines))


def _diff(diff: str, max_lines: int) -> Sequence[str]:
    if "\n" in diff:
        return ("Diff:", *cut_diff(diff, max_lines))
    why_none = diff.removeprefix(NO_DIFF)
    return (f"No diff: {why_none}" if why_none != diff else f"Diff: {diff}",) if diff else ()


def _indented(text: str) -> list[str]:
    """Further lines of a text do not look like another label."""
    first, *more = text.split("\n")
    return [first, *(f"    {line}" for line in more)]


def cut_diff(diff: str, max_lines: int = DIFF_LINES) -> tuple[str, ...]:
    """The lines of a diff, with the count of those that are left out."""
    lines = diff.split("\n")
    if len(lines) <= max_lines:
        return tuple(lines)
    rest = len(lines) - max_lines
    return (*lines[:max_lines], f"[... {rest:,} more line{'' if rest == 1 else 's'}]")


def choice_title(choice: Choice, *, remember: bool = False) -> str:
    """What a choice does; with `remember`, for good instead of for this session."""
    return choice.title.replace(FOR_SESSION, ALWAYS, 1) if remember else choice.title


def age(at_s: float, now_s: float | None = None) -> str:
    """How long ago that was: `3 min ago`."""
    return f"{span(_now(now_s) - at_s)} ago"


def outcome(approval: Approval, now_s: float | None = None) -> str:
    """What became of it: `expires in 50 min`, `approved (session) by page, 12:03:04`."""
    if approval.status is Status.WAITING:
        left_s = approval.request.expires_at_s - _now(now_s)
        return f"expires in {span(left_s)}" if approval.request.expires_at_s else "waits"
    if approval.status not in _DECIDED:
        return approval.status.value
    verdict = approval.verdict
    scope = f" ({verdict.scope}{_lasts(verdict)})" if verdict and verdict.approved else ""
    by = f" by {approval.decided_by}" if approval.decided_by else ""
    at = f", {clock_time(approval.decided_at_s)}" if approval.decided_at_s is not None else ""
    said = f": {verdict.reason}" if verdict is not None and verdict.reason else ""
    return f"{_DECIDED[approval.status]}{scope}{by}{at}{said}"


def _now(now_s: float | None) -> float:
    return time.time() if now_s is None else now_s


def _lasts(verdict: Verdict) -> str:
    return ", taken back" if verdict.taken_back else ", remembered" if verdict.remember else ""
