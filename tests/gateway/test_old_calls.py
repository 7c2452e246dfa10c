"""A running gateway removes old calls from the record for people, also if no client ever lists its tools. R-AUDIT-2."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from goat_mcp.calls.audit.call_record import DAY_S
from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.core.context import ToolContext
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory

pytestmark = pytest.mark.anyio
PATIENCE_S = 20.0


def recorded(file: Path) -> list[str]:
    with closing(sqlite3.connect(file)) as connection:
        return [call_id for (call_id,) in connection.execute("SELECT call_id FROM calls ORDER BY at_s")]


async def test_old_calls_go_although_nobody_lists_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goat_mcp.calls.audit.log.EXPIRE_AFTER_S", 0)
    state = StateDirectory(tmp_path / "state")
    file = state.path / "calls.db"
    gateway = Gateway(Settings(workspace=(tmp_path,)), approval=Approval.DENY, state=state)
    for call_id in ("old", "new"):
        gateway.audit.decision("Glob", {}, ToolContext(call_id=call_id), decision="allow", rule="r")
    gateway.audit.close()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("UPDATE calls SET at_s = ? WHERE call_id = 'old'", (time.time() - 31 * DAY_S,))
        connection.commit()

    async with gateway.running():
        with anyio.fail_after(PATIENCE_S):
            while recorded(file) != ["new"]:  # noqa: ASYNC110  # what changes is a file
                await anyio.sleep(0.02)
