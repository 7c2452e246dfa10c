"""The approval queue: whatever waits for a person is one record (design D17).

It is `approvals.db` in the state directory, 0600, or in the state that several servers share (`state.url`): every
process sees the same records, and each is decided once.
What a decision does is not here.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from goat_mcp.calls.approvals.approval_rows import AFTER_LOSS, COLUMNS, SCHEMA, from_row, insert_row
from goat_mcp.calls.approvals.record import Approval, DecidedBefore, Kind, Request, Status, Verdict
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.processes.process_table import ProcessNames
from goat_mcp.state.database import Warn, open_table
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.private_file import no_warning

if TYPE_CHECKING:
    from sqlite3 import Connection

FILE_NAME = "approvals.db"
LEAVE_WITHIN_S = 1.0
"""A call that ends waits no longer for others that write."""
KEPT_S = 30 * 86_400.0
"""How long a decided record is kept."""
MAX_GRANTS = 1000
"""So many of the newest approvals are looked through for grants to sessions."""


class ApprovalStore:
    """All records of the user. Blocking: on an event loop, in a thread. Raises `ToolError(IO)` if the file fails."""

    def __init__(self, state: StateDirectory, warn: Warn = no_warning) -> None:
        self._database = open_table(state, warn, FILE_NAME, "approvals", SCHEMA, AFTER_LOSS)
        self.processes = ProcessNames("" if state.shared is None else state.shared.machine)

    @property
    def exists(self) -> bool:
        """Without a file nothing ever waited: whoever only looks makes none."""
        return self._database.exists

    def close(self) -> None:
        self._database.close()

    def add(self, request: Request, call_id: str = "") -> Approval:
        """Put a request in the queue, for a call that waits for it or for none."""
        approval = Approval(
            secrets.token_hex(16), request, time.time(), Status.WAITING, call_id=call_id, process=self.processes.mine
        )

        def insert(connection: Connection) -> None:
            connection.execute("DELETE FROM approvals WHERE status != 'waiting' AND at_s < ?", (time.time() - KEPT_S,))
            insert_row(connection, approval)

        self._database.write_here(insert)
        return approval

    def attend(self, subject: str, principal: str, call_id: str) -> Approval | None:
        """The record that an earlier, identical call left, for this call to go on with: one that waits and that no
        living call waits for, or one that was decided and that no call has used."""

        def take(connection: Connection) -> Approval | None:
            _expire(connection)
            rows = connection.execute(
                f"SELECT {COLUMNS} FROM approvals WHERE subject = ? AND principal = ? AND used_by = '' "
                "AND status IN ('waiting', 'approved', 'denied') AND expires_at_s > ? "
                "ORDER BY status = 'waiting', at_s",
                (subject, principal, time.time()),
            )
            for found in map(from_row, rows.fetchall()):
                if found.call_id and self.processes.is_alive(found.process):
                    continue
                if found.verdict is not None and found.verdict.taken_back:
                    continue
                connection.execute(
                    "UPDATE approvals SET call_id = ?, process = ? WHERE id = ?",
                    (call_id, self.processes.mine, found.id),
                )
                return replace(found, call_id=call_id, process=self.processes.mine)
            return None

        return self._database.write_here(take)

    def leave(self, id: str) -> None:
        """The call that waited ends; the request goes on waiting."""
        self._database.write_here(
            lambda connection: connection.execute("UPDATE approvals SET call_id = '' WHERE id = ?", (id,)),
            wait_s=LEAVE_WITHIN_S,
        )

    def withdraw(self, id: str) -> None:
        """Nothing waits for it any more. A decision that came before stands."""
        self._database.write_here(
            lambda connection: connection.execute(
                "UPDATE approvals SET status = 'withdrawn', call_id = '' WHERE id = ? AND status = 'waiting'", (id,)
            ),
            wait_s=LEAVE_WITHIN_S,
        )

    def open(self, request: Request, seen_at_s: float) -> Approval:
        """The record that waits about this subject, or a new one. For what has a store of its own and waited there at
        `seen_at_s`: raises `DecidedBefore` if somebody has decided since. An older denial does not count."""

        def open(connection: Connection) -> Approval:
            found = self._newest(connection, request.kind, request.subject)
            if found is not None and found.status is Status.WAITING:
                return found
            if found is not None and found.is_decided and (found.decided_at_s or 0) >= seen_at_s:
                raise DecidedBefore(found)
            approval = self._new(request)
            insert_row(connection, approval)
            return approval

        return self._database.write_here(open)

    def newest_of(self, kind: Kind, subject: str) -> Approval | None:
        """The newest record about it. `subject` may be the beginning of one that ends with `:` and more."""
        if not self.exists:
            return None
        return self._database.read_here(lambda connection: self._newest(connection, kind, subject))

    def decide(self, id: str, verdict: Verdict, by: str) -> Approval:
        """Record a decision, once. `by` says who, and where. Raises `DecidedBefore`, `ToolError(NOT_FOUND)`."""

        def decide(connection: Connection) -> Approval:
            _expire(connection)
            found = self._one(connection, id)
            if found.status is not Status.WAITING:
                raise DecidedBefore(found)
            status = Status.APPROVED if verdict.approved else Status.DENIED
            now_s = time.time()
            connection.execute(
                "UPDATE approvals SET status = ?, verdict = ?, decided_by = ?, decided_at_s = ?, "
                "process = CASE kind WHEN 'call' THEN process ELSE ? END WHERE id = ?",
                (status.value, json.dumps(asdict(verdict)), by, now_s, self.processes.mine, found.id),
            )
            return replace(found, status=status, verdict=verdict, decided_by=by, decided_at_s=now_s)

        return self._database.write_here(decide)

    def reopen(self, id: str) -> None:
        """What was approved could not be done: it waits again."""
        self._database.write_here(
            lambda connection: connection.execute(
                "UPDATE approvals SET status = 'waiting', verdict = '{}', decided_by = '', decided_at_s = NULL "
                "WHERE id = ? AND used_by = ''",
                (id,),
            )
        )

    def finish(self, id: str) -> None:
        """What was decided about something that has a store of its own is done there."""
        self._database.write_here(
            lambda connection: connection.execute("UPDATE approvals SET used_at_s = ? WHERE id = ?", (time.time(), id))
        )

    def use(self, id: str, call_id: str) -> Approval | None:
        """Let one call run by a decision. None if another call has used it, or if nobody has decided."""

        def use(connection: Connection) -> Approval | None:
            now_s = time.time()
            changed = connection.execute(
                "UPDATE approvals SET used_by = ?, used_at_s = ?, call_id = '' "
                "WHERE id = ? AND used_by = '' AND status IN ('approved', 'denied')",
                (call_id, now_s, id),
            )
            return self._one(connection, id) if changed.rowcount == 1 else None

        return self._database.write_here(use)

    def find(self, id: str) -> Approval:
        """By its id or the beginning of one. For the owner: of any principal. Raises `ToolError(NOT_FOUND)`."""
        self.expire()
        return self._database.read_here(lambda connection: self._one(connection, id))

    def waiting(self) -> list[Approval]:
        """Oldest first, of all principals: for the owner."""
        if not self.exists:
            return []
        self.expire()
        return self._select("status = 'waiting' ORDER BY at_s")

    def of(self, principal: str, *, ended: int) -> list[Approval]:
        """What waits for this principal, oldest first, then so many that wait no more, the newest decision first."""
        if not self.exists:
            return []
        self.expire()
        waiting = self._select("status = 'waiting' AND principal = ? ORDER BY at_s", principal)
        others = "status != 'waiting' AND principal = ? ORDER BY coalesce(decided_at_s, at_s) DESC LIMIT ?"
        return [*waiting, *self._select(others, principal, ended)]

    def newest_first(self, count: int = 200) -> list[Approval]:
        """Those that wait no more, the newest decision first, of all principals: for the owner."""
        if not self.exists:
            return []
        return self._select("status != 'waiting' ORDER BY coalesce(decided_at_s, at_s) DESC LIMIT ?", count)

    def used_by(self, call_ids: Sequence[str]) -> dict[str, Approval]:
        """The decision that each of these calls ran by, or was refused by; those without one are left out."""
        if not self.exists or not call_ids:
            return {}
        found = self._select(f"used_by IN ({', '.join('?' * len(call_ids))})", *call_ids)
        return {one.used_by: one for one in found}

    def granted(self, principal: str, session: str) -> list[Approval]:
        """Decisions for this session that add rules, the oldest first."""
        if not self.exists:
            return []
        found = self._select(
            "status = 'approved' AND principal = ? AND session = ? ORDER BY decided_at_s", principal, session
        )
        return [one for one in found if one.verdict is not None and one.verdict.grants]

    def session_grants(self) -> list[Approval]:
        """Decisions that add rules to sessions of processes that live, the newest first: for the owner."""
        if not self.exists:
            return []
        found = self._select(
            "status = 'approved' AND kind = 'call' AND session != '' ORDER BY decided_at_s DESC LIMIT ?", MAX_GRANTS
        )
        return [
            one
            for one in found
            if one.verdict is not None
            and one.verdict.grants
            and not one.verdict.remember
            and self.processes.is_alive(one.request.session.partition("/")[0])
        ]

    def take_back(self, id: str) -> Approval:
        """A grant to a session, with those of the same rules to the same session: nobody is to go by them any more.
        Raises `ToolError(NOT_FOUND)`."""
        found = next((one for one in self.session_grants() if one.id == id), None)
        if found is None or found.verdict is None:
            raise ToolError(
                ErrorCode.NOT_FOUND,
                f"no grant {id[:40]!r} to a running session",
                "Its session has ended, or it was taken back before.",
            )
        same = [
            (json.dumps(asdict(replace(one.verdict, taken_back=True))), one.id)
            for one in self.session_grants()
            if one.request.session == found.request.session
            and one.verdict is not None
            and set(one.verdict.rules) <= set(found.verdict.rules)
        ]
        self._database.write_here(
            lambda connection: connection.executemany("UPDATE approvals SET verdict = ? WHERE id = ?", same)
        )
        return found

    def sync(self, kind: Kind, requests: Sequence[Request], seen_at_s: float) -> None:
        """Make what waits of a kind what its own store said at `seen_at_s`, which may have changed since.

        What was denied is not asked again. What was approved and still waits there is: it waits again, unless whoever
        approved it is at it.
        """
        subjects = {request.subject for request in requests}

        def sync(connection: Connection) -> None:
            rows = connection.execute(
                "SELECT id, subject, at_s, process FROM approvals WHERE status = 'waiting' AND kind = ?", (kind.value,)
            ).fetchall()
            here = [row[:3] for row in rows if self.processes.is_here(row[3])]
            waiting = {subject for _, subject, _ in here}
            for id, subject, at_s in here:
                if subject not in subjects and at_s < seen_at_s:
                    connection.execute("UPDATE approvals SET status = 'withdrawn' WHERE id = ?", (id,))
            for request in requests:
                if request.subject not in waiting and not self._is_settled(connection, request, seen_at_s):
                    insert_row(connection, self._new(request))

        if requests or self.exists:
            self._database.write_here(sync)

    def expire(self) -> None:
        """Those whose time is over wait no more. Whoever only looks waits for nobody who writes."""
        if self.exists and self._database.read_here(_has_expired):
            self._database.write_here(_expire)

    def mark(self) -> object:
        """Another one if any process has changed the queue."""
        return self._database.mark()

    def _select(self, condition: str, *values: Any) -> list[Approval]:
        query = f"SELECT {COLUMNS} FROM approvals WHERE {condition}"
        return self._database.read_here(
            lambda connection: [from_row(row) for row in connection.execute(query, values).fetchall()]
        )

    def _newest(self, connection: Connection, kind: Kind, subject: str) -> Approval | None:
        row = connection.execute(
            f"SELECT {COLUMNS} FROM approvals WHERE kind = ? AND (subject = ? OR substr(subject, 1, ?) = ?) "
            "ORDER BY status = 'waiting' DESC, at_s DESC LIMIT 1",
            (kind.value, subject, len(subject) + 1, f"{subject}:"),
        ).fetchone()
        return None if row is None else from_row(row)

    def _new(self, request: Request) -> Approval:
        """`process`: what waits in a store of its own is decided on the machine of that store."""
        return Approval(secrets.token_hex(16), request, time.time(), Status.WAITING, process=self.processes.mine)

    def _is_settled(self, connection: Connection, request: Request, seen_at_s: float) -> bool:
        """Whether it was denied, or is approved and somebody is at it."""
        rows = connection.execute(
            "SELECT status, process, used_at_s FROM approvals "
            "WHERE subject = ? AND status IN ('approved', 'denied') AND kind = ?",
            (request.subject, request.kind.value),
        ).fetchall()
        return any(status == "denied" or self._is_under_way(process, at_s, seen_at_s) for status, process, at_s in rows)

    def _is_under_way(self, process: str, done_at_s: float | None, seen_at_s: float) -> bool:
        """Whether what was approved was not done yet at that moment, by a process that lives."""
        return self.processes.is_alive(process) if done_at_s is None else done_at_s >= seen_at_s

    def _one(self, connection: Connection, id: str) -> Approval:
        rows = connection.execute(
            f"SELECT {COLUMNS} FROM approvals WHERE {BY_ID} LIMIT 2", (id.lower(), f"{id.lower()}g")
        ).fetchall()
        if len(rows) == 1 and len(id) >= 4:
            return from_row(rows[0])
        message = f"several approvals begin with {id[:40]!r}" if rows else f"no approval {id[:40]!r}"
        raise ToolError(ErrorCode.NOT_FOUND, message, "See goat-mcp approvals.")


BY_ID = "id >= ? AND id < ?"
"""From the beginning of an id to that with a `g`: ids are hexadecimal. A call that waits asks often."""
_EXPIRED = (
    "expires_at_s > 0 AND expires_at_s < ? "
    "AND (status = 'waiting' OR (kind = 'call' AND status = 'approved' AND used_by = ''))"
)
"""One that waits, and an approval that no call has used."""


def _expire(connection: Connection) -> None:
    connection.execute(f"UPDATE approvals SET status = 'expired' WHERE {_EXPIRED}", (time.time(),))


def _has_expired(connection: Connection) -> bool:
    return (
        connection.execute(f"SELECT 1 FROM approvals WHERE {_EXPIRED} LIMIT 1", (time.time(),)).fetchone() is not None
    )
