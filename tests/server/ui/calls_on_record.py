"""Calls in the record, made with the code that records real ones, and a gateway that makes real calls."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from goat_mcp.calls.audit import AuditLog
from goat_mcp.calls.audit.call_record import CallRecord, RecordOptions
from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.core.context import ToolContext
from goat_mcp.core.redaction import Redactor
from goat_mcp.core.result import ToolResult
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.private_file import no_warning

FLUSHED_EVERY = 2000
"""The record takes so many at a time; more would wait in memory and be lost."""


def record_calls(state: Path, *calls: Mapping[str, Any], pid: int = 1) -> None:
    """Each with an `id` and what differs from an allowed Read that has ended well; `ends=False`: it has not ended."""
    people = CallRecord(StateDirectory(state), RecordOptions(), redactor=Redactor(), warn=no_warning, pid=pid)
    log = AuditLog(state / "audit.jsonl", people=people)
    for number, call in enumerate(calls, start=1):
        tool, error = call.get("tool", "Read"), call.get("error")
        ctx = ToolContext(call_id=call["id"], session_key="stdio", client_name=call.get("client", "editor"))
        log.decision(
            tool,
            call.get("arguments", {}),
            ctx,
            decision=call.get("decision", "allow"),
            rule=call.get("rule", "mode default"),
            by=call.get("by", "mode"),
        )
        if call.get("ends", True):
            log.outcome(tool, ctx, error_code=error, result_chars=7)
        if number % FLUSHED_EVERY == 0:
            log.close()
    log.close()


class Working:
    """A gateway that works in `folder`; `parts` are for a page of it."""

    def __init__(self, folder: Path, settings: Settings | None = None) -> None:
        self.workspace = folder.resolve() / "ws"
        self.workspace.mkdir(exist_ok=True)
        self.state = folder.resolve() / "state"
        self.made = 0
        chosen = {"workspace": [self.workspace], "files": {"read_before_write": "off"}}
        self.gateway = Gateway(
            settings or Settings.model_validate(chosen), approval=Approval.HOST, state=StateDirectory(self.state)
        )

    @property
    def parts(self) -> dict[str, Any]:
        async def gateway() -> Gateway:
            return self.gateway

        return {"gateway": gateway}

    async def call(self, tool: str, **arguments: Any) -> str:
        """Returns the id of the call, which is on record then."""
        self.made += 1
        id = f"{self.made:016x}"
        ctx = ToolContext(call_id=id, session_key="stdio", client_name="editor")
        result: ToolResult = await self.gateway.call(tool, arguments, ctx)
        assert not result.is_error, result.text
        self.gateway.audit.close()
        return id


@asynccontextmanager
async def working(folder: Path) -> AsyncGenerator[Working]:
    work = Working(folder)
    async with work.gateway.running():
        yield work
