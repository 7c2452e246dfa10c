"""A record of the approval queue as a row of `approvals.db`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from goat_mcp.calls.approvals.record import Approval, Choice, Kind, Request, Status, Verdict

if TYPE_CHECKING:
    from sqlite3 import Connection

SCHEMA = (
    """CREATE TABLE IF NOT EXISTS approvals (
        id TEXT PRIMARY KEY, kind TEXT NOT NULL, subject TEXT NOT NULL, principal TEXT NOT NULL, session TEXT NOT NULL,
        scope_id TEXT NOT NULL, at_s REAL NOT NULL, expires_at_s REAL NOT NULL, status TEXT NOT NULL,
        decided_at_s REAL, decided_by TEXT NOT NULL DEFAULT '', verdict TEXT NOT NULL DEFAULT '{}',
        call_id TEXT NOT NULL DEFAULT '', process TEXT NOT NULL DEFAULT '', used_by TEXT NOT NULL DEFAULT '',
        used_at_s REAL, request TEXT NOT NULL)""",
    "CREATE INDEX IF NOT EXISTS approvals_by_status ON approvals (status, at_s)",
    "CREATE INDEX IF NOT EXISTS approvals_by_subject ON approvals (subject, status)",
    "CREATE INDEX IF NOT EXISTS approvals_by_end ON approvals (coalesce(decided_at_s, at_s)) WHERE status != 'waiting'",
    "CREATE INDEX IF NOT EXISTS approvals_by_use ON approvals (used_by)",
)
AFTER_LOSS = (
    "UPDATE approvals SET status = 'expired', call_id = '' "
    "WHERE kind = 'call' AND status = 'approved' AND used_by = ''",
    "UPDATE approvals SET verdict = json_set(verdict, '$.taken_back', json('true')) "
    "WHERE kind = 'call' AND status = 'approved' AND NOT json_extract(verdict, '$.remember')",
)
"""Nobody goes by an approval that may have been used since, or by a grant that may have been taken back since."""
COLUMNS = "id, request, at_s, status, verdict, decided_at_s, decided_by, call_id, process, used_by, used_at_s"


def insert_row(connection: Connection, approval: Approval) -> None:
    request = approval.request
    connection.execute(
        "INSERT INTO approvals (id, kind, subject, principal, session, scope_id, at_s, expires_at_s, status, call_id, "
        "process, request) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(approval.id, request.kind.value, request.subject, request.principal, request.session, request.scope_id),
            *(approval.at_s, request.expires_at_s, approval.status.value, approval.call_id, approval.process),
            json.dumps(asdict(request)),
        ),
    )


def from_row(row: Sequence[Any]) -> Approval:
    id, request, at_s, status, verdict, decided_at_s, decided_by, call_id, process, used_by, used_at_s = row
    fields: dict[str, Any] = json.loads(request)
    fields["kind"] = Kind(fields["kind"])
    fields["choices"] = tuple(_choice(one) for one in fields["choices"])
    fields["arguments"] = tuple((str(name), str(text)) for name, text in fields["arguments"])
    fields["why"] = tuple(fields["why"])
    decided: dict[str, Any] = json.loads(verdict)
    return Approval(
        id=id,
        request=Request(**fields),
        at_s=at_s,
        status=Status(status),
        verdict=_verdict(decided) if decided else None,
        decided_at_s=decided_at_s,
        decided_by=decided_by,
        call_id=call_id,
        process=process,
        used_by=used_by,
        used_at_s=used_at_s,
    )


def _choice(fields: dict[str, Any]) -> Choice:
    return replace(Choice(**fields), rules=tuple(fields["rules"]))


def _verdict(fields: dict[str, Any]) -> Verdict:
    return replace(Verdict(**fields), rules=tuple(fields["rules"]))
