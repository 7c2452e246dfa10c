"""A shell command as the work of a task."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from goat_mcp.commands.tasks.task import Outcome, TaskStatus
from goat_mcp.processes.output_capture import OutputPart
from goat_mcp.processes.running_command import EndedBy, RunningCommand, signal_name


@dataclass(frozen=True)
class ShellTask:
    """Runs until nothing of the command runs any more, which may be later than its bash ended."""

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
    def outcome(self) -> Outcome | None:
        if not self.command.gone.is_set():
            return None
        code = self.command.exit_code
        match self.command.ended_by:
            case EndedBy.STOP:
                return Outcome(TaskStatus.STOPPED, code)
            case EndedBy.TIMEOUT:
                return Outcome(TaskStatus.FAILED, code, f"timed out after {self.limit_s:g} s")
            case EndedBy.OUTPUT:
                return Outcome(TaskStatus.FAILED, code, "ended because it printed more than 5 GB")
            case None:
                reason = f"ended by {signal_name(code)}" if code is not None and signal_name(code) else ""
                return Outcome(TaskStatus.COMPLETED if code == 0 else TaskStatus.FAILED, code, reason)

    def output(self, max_chars: int, start: int) -> OutputPart:
        return self.command.capture.shown(max_chars, start, complete=self.command.gone.is_set())

    async def wait(self, timeout_s: float | None) -> bool:
        return await self.command.wait_gone(timeout_s)

    async def stop(self) -> None:
        await self.command.end(EndedBy.STOP)
