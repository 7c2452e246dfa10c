"""A background task, the contract of the work behind one, and a shell command as such work."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from goat_mcp.core.result import ToolResult
from goat_mcp.processes.output_capture import OutputPart
from goat_mcp.processes.running_command import EndedBy, RunningCommand, signal_name

MAX_READERS = 100


class TaskStatus(StrEnum):
    """Source: Goat `TaskManager`; `orphaned` is one that a restart of the server ended."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    STOPPED = "stopped"
    ORPHANED = "orphaned"


@dataclass(frozen=True)
class RequestError:
    """A JSON-RPC error that a call ended with."""

    code: int
    message: str
    data: Any = None


@dataclass(frozen=True)
class TaskOutcome:
    """How a task ended. `reason` says why it failed, if an exit code does not explain it. `output_from` is the byte of
    its output file at which its result begins, behind reports on progress. `result` is what the call that became the
    task would have returned, if that is more than its output; `error` is what it was refused with instead."""

    status: TaskStatus
    exit_code: int | None = None
    reason: str = ""
    output_from: int = 0
    result: ToolResult | None = None
    error: RequestError | None = None


class TaskWork(Protocol):
    """The work behind a task: a shell command, an agent, an upstream's call."""

    @property
    def kind(self) -> str:
        """`shell`, `agent`, `request`, `upstream`."""
        ...

    @property
    def title(self) -> str:
        """The command, or what the agent was asked to do."""
        ...

    @property
    def output_file(self) -> Path | None: ...

    @property
    def outcome(self) -> TaskOutcome | None:
        """None while it runs."""
        ...

    @property
    def seconds(self) -> float:
        """How long it has run, or ran."""
        ...

    def output(self, max_chars: int, start: int) -> OutputPart:
        """What it has printed from byte `start` on."""
        ...

    async def wait(self, timeout_s: float | None) -> bool:
        """Wait for its end. Returns False when the time is up first."""
        ...

    async def stop(self) -> None:
        """End it and all it started. Returns when nothing of it is left."""
        ...


@dataclass
class Task:
    """One piece of background work, bound to the principal that started it.

    `name` is given by its starter, and `started_by` is the session that started it; both may be empty.
    `restart_data` is JSON: what another replica needs to go on with it, or None if none may.
    """

    id: str
    principal: str
    work: TaskWork
    started_at_s: float = field(default_factory=time.time)
    name: str = ""
    started_by: str = ""
    ended_at_s: float | None = None
    restart_data: Mapping[str, Any] | None = None
    _read_up_to: OrderedDict[str, int] = field(default_factory=OrderedDict[str, int])

    @property
    def status(self) -> TaskStatus:
        outcome = self.work.outcome
        return TaskStatus.RUNNING if outcome is None else outcome.status

    def new_output(self, reader: str, max_chars: int) -> OutputPart:
        """What came since `reader` last asked."""
        part = self.work.output(max_chars, self._read_up_to.get(reader, 0))
        self.mark_read(reader, part.end)
        return part

    def mark_read(self, reader: str, end: int) -> None:
        """`reader` has seen the output up to byte `end` elsewhere."""
        self._read_up_to[reader] = end
        self._read_up_to.move_to_end(reader)
        if len(self._read_up_to) > MAX_READERS:
            self._read_up_to.popitem(last=False)


@dataclass(frozen=True)
class ShellTask:
    """A shell command. Runs until its last process has ended, which may be later than its bash."""

    command: RunningCommand
    title: str
    limit_s: float
    kind: str = "shell"

    @property
    def output_file(self) -> Path | None:
        return self.command.capture.path

    @property
    def seconds(self) -> float:
        return self.command.gone_after_s or time.monotonic() - self.command.started_s

    @property
    def outcome(self) -> TaskOutcome | None:
        if not self.command.gone.is_set():
            return None
        code = self.command.exit_code
        match self.command.ended_by:
            case EndedBy.STOP:
                return TaskOutcome(TaskStatus.STOPPED, code)
            case EndedBy.TIMEOUT:
                return TaskOutcome(TaskStatus.FAILED, code, f"timed out after {self.limit_s:g} s")
            case EndedBy.OUTPUT:
                return TaskOutcome(TaskStatus.FAILED, code, "ended because it printed more than 5 GB")
            case None:
                reason = f"ended by {signal_name(code)}" if code is not None and signal_name(code) else ""
                return TaskOutcome(TaskStatus.COMPLETED if code == 0 else TaskStatus.FAILED, code, reason)

    def output(self, max_chars: int, start: int) -> OutputPart:
        return self.command.capture.shown(max_chars, start, complete=self.command.gone.is_set())

    async def wait(self, timeout_s: float | None) -> bool:
        return await self.command.wait_gone(timeout_s)

    async def stop(self) -> None:
        await self.command.end(EndedBy.STOP)
