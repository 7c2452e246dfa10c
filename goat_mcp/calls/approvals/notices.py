"""Which record was sent where, in `approvals.db`: each is sent once over all processes, and changed once when it ends.

What is sent, and how, is not here.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from goat_mcp.calls.approvals.store import FILE_NAME, KEPT_S
from goat_mcp.processes.process_table import ProcessNames
from goat_mcp.state.database import Warn, open_table
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.private_file import no_warning

if TYPE_CHECKING:
    from sqlite3 import Connection

_SCHEMA = (
    """CREATE TABLE IF NOT EXISTS notices (
        approval TEXT NOT NULL, channel TEXT NOT NULL, at_s REAL NOT NULL, process TEXT NOT NULL, status TEXT NOT NULL,
        message TEXT NOT NULL DEFAULT '', digest TEXT NOT NULL, may_approve INTEGER NOT NULL,
        PRIMARY KEY (approval, channel))""",
)


@dataclass(frozen=True, slots=True)
class SentNotice:
    """A message that a person may answer. `message` is its id in its channel."""

    approval: str
    message: str
    digest: str
    may_approve: bool


class Notices:
    """Of all records of the user. `channel` says where something was sent, in the same words in each process.

    Blocking: on an event loop, in a thread. Raises `ToolError(IO)` if the file fails.
    """

    def __init__(self, state: StateDirectory, warn: Warn = no_warning) -> None:
        self._database = open_table(state, warn, FILE_NAME, "notices", _SCHEMA)
        self._processes = ProcessNames("" if state.shared is None else state.shared.machine)

    def close(self) -> None:
        self._database.close()

    def claim(self, approval: str, channel: str, digest: str, may_approve: bool) -> bool:
        """Whether this process shall send it: nobody has, or whoever began to is dead."""

        def claim(connection: Connection) -> bool:
            connection.execute("DELETE FROM notices WHERE at_s < ?", (time.time() - KEPT_S,))
            row = connection.execute(
                "SELECT status, process FROM notices WHERE approval = ? AND channel = ?", (approval, channel)
            ).fetchone()
            if row is not None and (row[0] != "sending" or self._processes.is_alive(str(row[1]))):
                return False
            connection.execute(
                "INSERT OR REPLACE INTO notices (approval, channel, at_s, process, status, digest, may_approve) "
                "VALUES (?, ?, ?, ?, 'sending', ?, ?)",
                (approval, channel, time.time(), self._processes.mine, digest, may_approve),
            )
            return True

        return self._database.write_here(claim)

    def sent(self, approval: str, channel: str, message: str) -> None:
        """It was sent; with `message`, and it may be answered and changed there."""
        self._database.write_here(
            lambda connection: connection.execute(
                "UPDATE notices SET status = 'sent', message = ? WHERE approval = ? AND channel = ?",
                (message, approval, channel),
            )
        )

    def failed(self, approval: str, channel: str) -> None:
        """It was not sent, and nobody tries again."""
        self._database.write_here(
            lambda connection: connection.execute(
                "UPDATE notices SET status = 'failed' WHERE approval = ? AND channel = ?", (approval, channel)
            )
        )

    def open(self, channel: str) -> list[SentNotice]:
        """Messages that still have buttons."""
        return self._select("channel = ? AND status = 'sent' AND message != ''", channel)

    def find(self, approval: str, channel: str) -> SentNotice | None:
        found = self._select("approval = ? AND channel = ? AND message != ''", approval, channel)
        return found[0] if found else None

    def settle(self, approval: str, channel: str) -> bool:
        """Whether this process shall change the message, which has no buttons from now on."""
        changed = self._database.write_here(
            lambda connection: (
                connection.execute(
                    "UPDATE notices SET status = 'settled' WHERE approval = ? AND channel = ? AND status = 'sent'",
                    (approval, channel),
                ).rowcount
            )
        )
        return changed == 1

    def _select(self, condition: str, *values: str) -> list[SentNotice]:
        if not self._database.exists:
            return []  # whoever only looks makes none
        query = f"SELECT approval, message, digest, may_approve FROM notices WHERE {condition} ORDER BY at_s"
        rows = self._database.read_here(lambda connection: connection.execute(query, values).fetchall())
        return [SentNotice(str(one[0]), str(one[1]), str(one[2]), bool(one[3])) for one in rows]
