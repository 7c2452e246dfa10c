"""Tokens that count once, to whichever of the processes over one state directory they are shown first."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from goat_mcp.state.database import Database

if TYPE_CHECKING:
    from sqlite3 import Connection


class UsedTokens:
    """Remembers each for `kept_s`: after that it has to have expired by itself."""

    def __init__(self, database: Database, kept_s: float) -> None:
        self._database = database
        self._kept_s = kept_s

    async def first_use(self, token: str) -> bool:
        """Whether nobody has shown this token before. Raises `ToolError(IO)` where that cannot be told."""

        def use(connection: Connection) -> bool:
            now_s = time.time()
            connection.execute("DELETE FROM used_tokens WHERE used_at_s < ?", (now_s - 2 * self._kept_s,))
            added = connection.execute("INSERT OR IGNORE INTO used_tokens VALUES (?, ?)", (token, now_s))
            return added.rowcount == 1

        return await self._database.write(use)
