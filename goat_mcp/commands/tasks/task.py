"""A task as everybody sees it, and what the work behind one has to offer."""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from goat_mcp.processes.output_capture import OutputPart

MAX_READERS = 100


class TaskStatus(StrEnum):
    """Source: Goat `TaskManager`; `orphaned` is one that a restart of the server ended."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    STOPPED = "stopped"
    ORPHANED = "orphaned"


@dataclass(frozen=True)
class Outcome:
    """How a task ended. `reason` says in words why one failed that an exit code does not explain. `output_from` is the
    byte of its output file where what it gave begins, after what it told of its progress."""

    status: TaskStatus
    exit_code: int | None = None
    reason: str = ""
    output_from: int = 0


class TaskWork(Protocol):
    """The work behind a task: a shell command, an agent."""

    @property
    def kind(self) -> str:
        """`shell`, `agent`."""
        ...

    @property
    def title(self) -> str:
        """The command, or what the agent was asked to do."""
        ...

    @property
    def output_file(self) -> Path | None: ...

    @property
    def outcome(self) -> Outcome | None:
        """None while it runs."""
        ...

    @property
    def seconds(self) -> float:
        """How long it has run, or did."""
        ...

    def output(self, max_chars: int, start: int) -> OutputPart:
        """What it has printed from byte `start` on."""
        ...

    async def wait(self, timeout_s: float | None) -> bool:
        """Wait for its end. Returns False when the time is up first."""
        ...

    async def stop(self) -> None:
        """End it and all it started. Returns when nothing of it runs any more."""
        ...


@dataclass
class Task:
    """One piece of background work, bound to the principal that started it.

    `name` is what its starter calls it, and `started_by` the session it was started in; both may be empty.
    """

    id: str
    principal: str
    work: TaskWork
    started_at_s: float = field(default_factory=time.time)
    name: str = ""
    started_by: str = ""
    ended_at_s: float | None = None
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
