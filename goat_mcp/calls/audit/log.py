"""What is recorded of a call: one JSON line before it has any effect and one after it, with the same id.

Of contents these lines have the length and the hash only (R-AUDIT-1, R-AUDIT-2). `chain` writes them to the file;
`call_record` is the record for people beside it, with arguments.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal

import anyio
import anyio.to_thread
from pydantic import Field

from goat_mcp.calls.audit.call_record import DAY_S, CallRecord
from goat_mcp.calls.audit.chain import ChainFile
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError, cut_middle
from goat_mcp.core.redaction import Redactor
from goat_mcp.core.settings_part import SettingsPart


class AuditSettings(SettingsPart):
    """`path` is a file outside all workspaces; without one it is `audit.jsonl` in the state directory.

    A file that would grow over `max_bytes` is kept under a numbered name and a new one begun; `kept_files` of those
    stay. `on_failure` says what becomes of calls that change something or reach out while nothing can be recorded.

    `arguments`: whether the record for people has the arguments of calls, without secrets, or only their hash and
    length. A call stays in that record for `kept_days`.
    """

    path: Path | None = None
    max_bytes: int = Field(default=64 * 1024 * 1024, ge=4096)
    kept_files: int = Field(default=8, ge=1, le=10_000)
    on_failure: Literal["refuse", "warn"] = "refuse"
    arguments: Literal["redacted", "hash"] = "redacted"
    kept_days: int = Field(default=30, ge=1, le=3650)


Decided = Literal["allow", "deny", "none"]
_CANONICAL = json.JSONEncoder(sort_keys=True, default=str)
EXPIRE_AFTER_S = 5.0
"""Not while a process starts: a client waits for that."""
_MAX_CHARS = 300
_MAX_KNOWN = 256
_MAX_HOOKS = 20
_MAX_HOOK_MEMBERS = 4
_MAX_HOOK_CHARS = 80
"""All of it together stays under the 64 KB of a line, even where JSON needs twelve characters for each."""
_NOT_REFUSED = (ErrorCode.CANCELLED, ErrorCode.INTERNAL)


def _nobody(event: str, **facts: Any) -> None:
    """Where warnings go that nobody wants."""


class AuditLog:
    """One record of calls, opened on first use. A path of None records nothing.

    `warn` is called once when nothing can be recorded, and once when it can again.
    """

    def __init__(
        self,
        path: Path | None,
        options: AuditSettings | None = None,
        *,
        redactor: Redactor | None = None,
        warn: Callable[..., None] = _nobody,
        people: CallRecord | None = None,
    ) -> None:
        """`people` is the record for people, if there is one."""
        options = options or AuditSettings()
        self._file = None if path is None else ChainFile(path, max_bytes=options.max_bytes, kept=options.kept_files)
        self._refuses = options.on_failure == "refuse"
        self._redactor = redactor or Redactor()
        self._warn = warn
        self._people = people
        self._decided: set[str] = set()
        self._known: dict[tuple[int, int, str], str] = {}
        self._callers: dict[tuple[int, str, str, str], tuple[str, str, str]] = {}
        self.problem = ""
        """Why nothing can be recorded at present; empty if it can."""

    @property
    def file(self) -> Path | None:
        return None if self._file is None else self._file.path

    @property
    def head(self) -> str:
        """As `verify` prints it, of the last line that this process knows of; empty if there is none."""
        return "" if self._file is None else self._file.head

    def decision(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        ctx: ToolContext,
        *,
        decision: Decided,
        rule: str,
        by: str = "",
        hooks: Iterable[Mapping[str, Any]] = (),
        changes: bool = True,
    ) -> None:
        """Record what was decided, before any effect.

        Args:
            rule: what decided, in words.
            by: who decided: a rule, the mode, the user, the host.
            hooks: the outcome of each hook that ran, in order.
            changes: whether the call may change something or reach out. If nothing can be recorded, such a call
                that was allowed is refused: raises `ToolError(AUDIT)`, unless `audit.on_failure` is `warn`.
        """
        if self._file is None:
            return
        self._decided.add(ctx.call_id)
        outcomes = [self._hook(outcome) for outcome in hooks][:_MAX_HOOKS]
        hashed = _length_and_hash(arguments)
        written = self._append(
            ctx,
            tool,
            event="decision",
            decision=decision,
            rule=self._shown(rule),
            **({"by": self._shown(by)} if by else {}),
            **({"hooks": outcomes} if outcomes else {}),
            **hashed,
        )
        if self._people is not None:
            self._people.decided(tool, arguments, ctx, decision=decision, rule=rule, by=by, hashed=hashed)
        if not written and decision == "allow" and changes and self._refuses:
            raise ToolError(
                ErrorCode.AUDIT,
                f"{tool} was not run: the record of calls cannot be written ({self.problem})",
                "Tell the user: free the disk or fix audit.path. Tools that only read still work.",
            )

    def outcome(
        self,
        tool: str,
        ctx: ToolContext,
        *,
        error_code: str | None,
        arguments: Mapping[str, Any] | None = None,
        result_chars: int | None = None,
    ) -> None:
        """Record how the call ended. Of a call that ended before anybody decided about it, that is recorded first."""
        if self._file is None:
            return
        if ctx.call_id not in self._decided and arguments is not None:
            refused = error_code is not None and error_code not in _NOT_REFUSED
            self.decision(
                tool,
                arguments,
                ctx,
                decision="deny" if refused else "none",
                rule=error_code if refused and error_code else f"ended before a decision: {error_code or 'answered'}",
            )
        self._decided.discard(ctx.call_id)
        elapsed_ms = round((time.monotonic() - ctx.started_at_s) * 1000, 3)
        self._append(ctx, tool, event="outcome", error_code=error_code, duration_ms=elapsed_ms)
        if self._people is not None:
            self._people.ended(ctx, error_code=error_code, duration_ms=elapsed_ms, result_chars=result_chars)

    async def off_loop(self, record: Callable[[], None]) -> None:
        """Run `record`, a call of `decision` or `outcome`: here if the file is free, which takes some 50 us, or else in
        a thread. It is run also if the caller is cancelled.
        """
        if self._file is None:
            record()
            return
        if self._file.try_hold():
            try:
                record()
            finally:
                self._file.release()
            return
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(record)

    @asynccontextmanager
    async def user_action(
        self, what: str, arguments: Mapping[str, Any], ctx: ToolContext, rule: str
    ) -> AsyncGenerator[list[str]]:
        """Record what the user does outside of calls (undo, review) in the same way: before it and after it.

        What the block adds to the list is an error code: some of it was refused. Raises `ToolError(AUDIT)` as
        `decision` does.
        """
        await self.off_loop(partial(self.decision, what, arguments, ctx, decision="allow", rule=rule, by="user"))
        refused: list[str] = []
        try:
            yield refused
        except ToolError as error:
            refused.append(str(error.code))
            raise
        except BaseException as problem:
            refused.append(str(ErrorCode.INTERNAL if isinstance(problem, Exception) else ErrorCode.CANCELLED))
            raise
        finally:
            await self.off_loop(partial(self.outcome, what, ctx, error_code=next(iter(refused), None)))

    def check(self) -> None:
        """Raises `OSError` if nothing could be recorded."""
        if self._file is not None:
            self._file.check()

    async def keep_expired(self) -> None:
        """Remove old calls from the record for people, soon and every day, until cancelled."""
        await anyio.sleep(EXPIRE_AFTER_S)
        while self._people is not None:
            await anyio.to_thread.run_sync(self._people.expire, abandon_on_cancel=True)
            await anyio.sleep(DAY_S)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        if self._people is not None:
            self._people.close()

    def _append(self, ctx: ToolContext, tool: str, *, event: str, **fields: Any) -> bool:
        assert self._file is not None
        # The same few callers and tools stand in nearly all lines.
        key = (self._redactor.generation, ctx.session_key, ctx.principal, tool)
        if (caller := self._callers.get(key)) is None:
            caller = self._shown(ctx.session_key), self._shown(ctx.principal), self._shown(tool)
            if len(tool) <= _MAX_CHARS:
                if len(self._callers) >= _MAX_KNOWN:
                    self._callers.clear()
                self._callers[key] = caller
        session, principal, name = caller
        record = {
            "event": event,
            "call_id": ctx.call_id,
            "session": session,
            "principal": principal,
            "pid": os.getpid(),
            "tool": name,
            **fields,
        }
        try:
            self._file.append(record)
        except OSError as failed:
            if not self.problem:
                self._warn("calls are not recorded", problem=str(failed), call_id=ctx.call_id)
            self.problem = failed.strerror or str(failed)
            return False
        if self.problem:
            self._warn("calls are recorded again", after=self.problem)
            self.problem = ""
        return True

    def _hook(self, outcome: Mapping[str, Any]) -> dict[str, Any]:
        members = list(outcome.items())[:_MAX_HOOK_MEMBERS]
        return {
            name[:_MAX_HOOK_CHARS]: value
            if isinstance(value, bool | int | float | None)
            else self._shown(str(value), _MAX_HOOK_CHARS)
            for name, value in members
        }

    def _shown(self, text: str, max_chars: int = _MAX_CHARS) -> str:
        # The same few names and rules stand in nearly all lines.
        key = (self._redactor.generation, max_chars, text)
        if (known := self._known.get(key)) is not None:
            return known
        # Cut twice: a client may send a name of megabytes, and what is taken out can make a text longer.
        shown = cut_middle(self._redactor.text(text[: 4 * max_chars]), max_chars)
        if len(text) <= max_chars:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            self._known[key] = shown
        return shown


def _length_and_hash(arguments: Mapping[str, Any]) -> dict[str, Any]:
    try:
        canonical = _CANONICAL.encode(arguments)
    except (TypeError, ValueError, RecursionError):  # an embedder's call may hold what is no JSON
        canonical = ascii(arguments)
    return {"args_sha256": hashlib.sha256(canonical.encode()).hexdigest(), "args_chars": len(canonical)}
