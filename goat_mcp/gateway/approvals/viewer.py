"""The queue as one person sees it: an administrator all of it, anybody else what their own calls brought about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import anyio.to_thread

from goat_mcp.calls.approvals.record import Approval, Status
from goat_mcp.calls.approvals.scopes import ONCE
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.gateway.approvals.queue import ApprovalQueue, Decided

MAX_ENDED = 200


@dataclass(frozen=True)
class Viewer:
    """Who looks. `is_owner`: whoever runs goat-mcp here, with a login of this machine."""

    principal: str = ""
    sees_all: bool = False
    is_owner: bool = False


THE_OWNER = Viewer(sees_all=True, is_owner=True)


@dataclass(frozen=True)
class ViewedApprovals:
    """What somebody else's is looks as if it did not exist (R-HTTP-3)."""

    queue: ApprovalQueue
    viewer: Viewer

    async def waiting(self) -> list[Approval]:
        """Oldest first."""
        return [one for one in await self.queue.waiting() if self._is_shown(one)]

    async def decided(self, count: int) -> list[Approval]:
        """Newest first."""
        return await anyio.to_thread.run_sync(self._decided, count)

    async def find(self, id: str) -> Approval:
        """By its id or the beginning of one. Raises `ToolError(NOT_FOUND)`."""
        return await anyio.to_thread.run_sync(self._find, id)

    async def approve(
        self, id: str, *, scope: str = ONCE, remember: bool = False, prefix: str = "", by: str
    ) -> Decided:
        """Raises as `find` and `ApprovalQueue.approve` do."""
        found = await self.find(id)
        return await self.queue.approve(found.id, scope=scope, remember=remember, prefix=prefix, by=by)

    async def deny(self, id: str, *, by: str, reason: str = "") -> Decided:
        found = await self.find(id)
        return await self.queue.deny(found.id, by=by, reason=reason)

    def _is_shown(self, approval: Approval) -> bool:
        return self.viewer.sees_all or approval.request.principal == self.viewer.principal

    def _decided(self, count: int) -> list[Approval]:
        if self.viewer.sees_all:
            return self.queue.store.newest_first(count)
        own = self.queue.store.of(self.viewer.principal, ended=count)
        return [one for one in own if one.status is not Status.WAITING]

    def _find(self, id: str) -> Approval:
        if self.viewer.sees_all:
            return self.queue.store.find(id)
        # Among their own alone: another one's must not even make an id ambiguous.
        own = self.queue.store.of(self.viewer.principal, ended=MAX_ENDED)
        found = [one for one in own if id and one.id.startswith(id)]
        if len(found) != 1:
            raise ToolError(ErrorCode.NOT_FOUND, f"no approval of yours has the id {id[:80]!r}", "List them again.")
        return found[0]


def approval_fields(approval: Approval, results: Mapping[str, str] | None = None) -> dict[str, Any]:
    """One record for programs. `results` are what became of them, by id."""
    request = approval.request
    asked = {name: value for name, value in asdict(request).items() if name not in ("subject", "scope_id", "session")}
    return {
        "id": approval.id,
        "short_id": approval.short_id,
        "status": approval.status.value,
        "at_s": approval.at_s,
        **asked,
        "kind": request.kind.value,
        "arguments": dict(request.arguments),
        "waits": bool(approval.call_id) and approval.status is Status.WAITING,
        "decided_by": approval.decided_by,
        "decided_at_s": approval.decided_at_s,
        "verdict": None if approval.verdict is None else asdict(approval.verdict),
        "used_by": approval.used_by,
        "result": (results or {}).get(approval.id, ""),
    }


def listed(approvals: Sequence[Approval]) -> list[dict[str, Any]]:
    return [approval_fields(one) for one in approvals]
