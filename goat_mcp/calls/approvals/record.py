"""What waits for a person, as one record, and what they decided about it (design D17)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from goat_mcp.core.errors import ErrorCode, ToolError

SHORT_ID_CHARS = 8


class Kind(StrEnum):
    """What waits."""

    CALL = "call"
    PLAN = "plan"
    CHANGE = "change"
    """A staged change of a file (review mode)."""
    DEFINITION = "definition"
    """A tool, prompt or launch of an upstream that was changed, or is flagged at first sight."""
    LOGIN = "login"
    PROJECT = "project"
    """The settings file of a project, which asks for rules."""


class Status(StrEnum):
    WAITING = "waiting"
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    """What waited is gone: the client cancelled its call, a plan was replaced, a server was removed."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One scope that a person may choose. `rules` are the allow rules that it adds, none for `once`.

    `prefix` is the command prefix that a person may edit, empty if there is none. `may_remember`: the rules may be
    kept for good, not only for the session.
    """

    scope: str
    title: str
    rules: tuple[str, ...] = ()
    may_remember: bool = False
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """What a person is asked. All texts are without secrets, with nothing in them that hides or reorders text.

    `subject` binds the decision: for a call a hash of tool, arguments, definition, directory and principal (R-PERM-4),
    for other kinds the name of what waits. `scope_id` is the workspace's, `asked_by` the rule or mode that asks, `why`
    the reasons for the risk, `diff` unified, `facts` what a program may want to know.
    """

    kind: Kind
    subject: str
    title: str
    principal: str
    session: str = ""
    scope_id: str = ""
    client: str = ""
    tool: str = ""
    workspace: str = ""
    directory: str = ""
    arguments: tuple[tuple[str, str], ...] = ()
    diff: str = ""
    risk: str = ""
    why: tuple[str, ...] = ()
    asked_by: str = ""
    args_sha256: str = ""
    pin: str = ""
    choices: tuple[Choice, ...] = ()
    expires_at_s: float = 0.0
    """Seconds since 1970; 0: it waits as long as what it is about."""
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a person decided. `rules` are those that hold from now on besides, `remember` for good, until they are taken
    back; `reason` is theirs for a denial, or their feedback."""

    approved: bool
    scope: str = "once"
    rules: tuple[str, ...] = ()
    remember: bool = False
    reason: str = ""
    taken_back: bool = False

    @property
    def grants(self) -> tuple[str, ...]:
        """The rules that still hold."""
        return () if self.taken_back else self.rules


@dataclass(frozen=True, slots=True)
class Approval:
    """One record. `call_id` and `process` are of the call that waits for it now, empty if none does; `used_by` is the
    call that ran by it."""

    id: str
    request: Request
    at_s: float
    status: Status
    verdict: Verdict | None = None
    decided_at_s: float | None = None
    decided_by: str = ""
    call_id: str = ""
    process: str = ""
    used_by: str = ""
    used_at_s: float | None = None

    @property
    def short_id(self) -> str:
        return self.id[:SHORT_ID_CHARS]

    @property
    def is_decided(self) -> bool:
        return self.status in (Status.APPROVED, Status.DENIED)


class DecidedBefore(ToolError):
    """Somebody else was first, or it is too late."""

    def __init__(self, approval: Approval) -> None:
        how = {
            Status.APPROVED: "was approved before",
            Status.DENIED: "was denied before",
            Status.EXPIRED: "has expired",
            Status.WITHDRAWN: "is withdrawn: nothing waits for it any more",
        }.get(approval.status, "cannot be decided")
        by = f", by {approval.decided_by}" if approval.decided_by else ""
        at = f", {clock_time(approval.decided_at_s)}" if approval.decided_at_s is not None else ""
        super().__init__(
            ErrorCode.INPUT,
            f"approval {approval.short_id} {how}{by}{at}",
            "The first decision stands. See goat-mcp approvals.",
            facts={"id": approval.id, "status": approval.status.value, "decided_by": approval.decided_by},
        )
        self.approval = approval


def clock_time(at_s: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at_s))
