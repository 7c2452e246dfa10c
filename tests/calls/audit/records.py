"""Records that the tests of the audit write, and a look at what is in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from goat_mcp.calls.audit import AuditLog
from goat_mcp.calls.audit.log import AuditSettings
from goat_mcp.core.context import ToolContext


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Each line as it is parsed; a line that is no JSON fails the test."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def write_calls(path: Path, count: int, *, first: int = 0, **options: Any) -> None:
    """`count` calls of Read, each allowed and ended well."""
    log = AuditLog(path, AuditSettings(**options))
    for number in range(first, first + count):
        ctx = ToolContext(call_id=f"call-{number}")
        log.decision("Read", {"n": number}, ctx, decision="allow", rule="mode default")
        log.outcome("Read", ctx, error_code=None)
    log.close()
