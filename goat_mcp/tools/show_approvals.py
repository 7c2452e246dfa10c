"""show_approvals: what of the caller's own waits for the user, for hosts that show it as an MCP App."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from goat_mcp.calls.approvals.record import Approval, Status
from goat_mcp.calls.approvals.wording import age, facts_of, headline, lines_of, outcome
from goat_mcp.core.arguments import ToolInput
from goat_mcp.core.context import ToolContext
from goat_mcp.core.names import APPROVALS_APP
from goat_mcp.core.result import ToolResult, text_block
from goat_mcp.core.rights import OWNERS
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.core.spec import ToolExample
from goat_mcp.core.tool import BuiltinTool

_DIFF_CHARS = 20_000


class PrincipalApprovals(Protocol):
    """The records of one principal, and where the user decides about them."""

    async def of(self, principal: str) -> Sequence[Approval]:
        """What waits, oldest first, then what was decided lately, the newest first."""
        ...

    async def page(self) -> str:
        """The address of a page that is open on this machine, without anything secret; empty if none is."""
        ...


class ShowApprovalsInput(ToolInput):
    """It has nothing to choose from."""


@dataclass(frozen=True)
class ShowApprovals(
    BuiltinTool[ShowApprovalsInput],
    side_effect=SideEffect.NONE,
    toolset="apps",
    name="show_approvals",
    title="Show what waits for approval",
    meta={"ui": {"resourceUri": APPROVALS_APP, "visibility": ["model", "app"]}},
):
    """Show the user which of your calls wait for their approval, and what they decided lately.

    It decides nothing, and neither can you: the user decides on the page of goat-mcp ui or on the command line. Call it
    after E_APPROVAL_PENDING.
    """

    examples = (ToolExample("After a call that waits", {}),)

    approvals: PrincipalApprovals

    async def execute(self, input: ShowApprovalsInput, ctx: ToolContext) -> ToolResult:
        found = await self.approvals.of(ctx.principal)
        page = await self.approvals.page() if ctx.principal in OWNERS else ""
        return ToolResult(content=(text_block(_text(found, page)),), structured=_structured(found, page))


def _text(found: Sequence[Approval], page: str) -> str:
    waiting = [one for one in found if one.status is Status.WAITING]
    decided = [one for one in found if one.status is not Status.WAITING]
    lines = ["Nothing waits for the user's decision."]
    if waiting:
        where = f"on the page {page}" if page else "on the page that `goat-mcp ui` opens"
        lines = [f"{_count(waiting)} for the user's decision. The user decides {where}, or in a terminal."]
    for one in waiting:
        first, *more = lines_of(one.request)
        lines += ["", f"[{one.short_id}] {first} · {age(one.at_s)} · {outcome(one)}"]
        lines += [f"  {line}" for line in more]
        lines.append(f"  In a terminal: goat-mcp approve {one.short_id}, or goat-mcp deny {one.short_id}")
    if decided:
        lines += ["", "Decided lately:", *(f"[{one.short_id}] {one.request.title} · {outcome(one)}" for one in decided)]
    return "\n".join(lines)


def _count(waiting: Sequence[Approval]) -> str:
    return "1 request waits" if len(waiting) == 1 else f"{len(waiting)} requests wait"


def _structured(found: Sequence[Approval], page: str) -> dict[str, Any]:
    return {
        "waiting": [_record(one, page) for one in found if one.status is Status.WAITING],
        "decided": [_record(one, page) for one in found if one.status is not Status.WAITING],
        "page": page,
    }


def _record(one: Approval, page: str) -> Mapping[str, Any]:
    request = one.request
    return {
        "id": one.short_id,
        "kind": request.kind.value,
        "status": one.status.value,
        "headline": headline(request) if one.status is Status.WAITING else request.title,
        "risk": request.risk,
        "facts": dict(facts_of(request)),
        "arguments": dict(request.arguments),
        "diff": request.diff[:_DIFF_CHARS],
        "at_s": one.at_s,
        "age": age(one.at_s),
        "outcome": outcome(one),
        "page": f"{page}#a-{one.id}" if page else "",
    }
