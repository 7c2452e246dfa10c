"""The audit log: one JSON line before a call has any effect and one after it, same id.

Contents never enter it, only their length and hash (R-AUDIT-1, R-AUDIT-2).
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from goat_mcp.core.context import ToolContext


class AuditLog:
    """Appends to one file, opened on first use, 0600. A path of None records nothing."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._descriptor: int | None = None
        self._sequence = 0

    def decision(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        ctx: ToolContext,
        *,
        decision: str,
        rule: str,
        hooks: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Record what was decided, and what each hook said of it, before any effect.

        Raises `OSError` where it cannot be written.
        """
        if self._path is None:
            return
        canonical = json.dumps(arguments, sort_keys=True, default=str, ensure_ascii=True)
        self._append(
            ctx,
            event="decision",
            tool=tool,
            decision=decision,
            rule=rule,
            args_sha256=hashlib.sha256(canonical.encode()).hexdigest(),
            args_chars=len(canonical),
            **({"hooks": list(hooks)} if hooks else {}),
        )

    def outcome(self, tool: str, ctx: ToolContext, *, error_code: str | None) -> None:
        """Record how the call ended."""
        if self._path is None:
            return
        elapsed_ms = round((time.monotonic() - ctx.started_at_s) * 1000, 3)
        self._append(ctx, event="outcome", tool=tool, error_code=error_code, duration_ms=elapsed_ms)

    def check(self) -> None:
        """Raises `OSError` where nothing could be recorded."""
        if self._path is not None:
            self._open()

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _append(self, ctx: ToolContext, **fields: Any) -> None:
        self._sequence += 1
        record = {
            "ts": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "pid": os.getpid(),
            "seq": self._sequence,
            "call_id": ctx.call_id,
            "session": ctx.session_key,
            "principal": ctx.principal,
            **fields,
        }
        line = json.dumps(record, ensure_ascii=True) + "\n"
        os.write(self._open(), line.encode())

    def _open(self) -> int:
        if self._descriptor is None:
            assert self._path is not None
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self._descriptor = os.open(self._path, flags, 0o600)
        return self._descriptor
