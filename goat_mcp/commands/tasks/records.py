"""The records of tasks on disk, so that a restarted server can report how they ended (design D6)."""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from goat_mcp.commands.tasks.kept_answer import kept_answer, restored
from goat_mcp.commands.tasks.task import Task, TaskOutcome, TaskStatus
from goat_mcp.processes.output_capture import HEAD_BYTES, TAIL_BYTES, OutputPart, cut, join_cut, readable
from goat_mcp.processes.process_table import living_process
from goat_mcp.state.database import Warn
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.private_file import no_warning, set_aside, write_private

KEEP_ENDED_S = 3600.0
KEEP_LOST_S = 7 * 24 * 3600.0
TASK_ID = re.compile(r"[a-z2-7]{20,40}\Z")


@dataclass(frozen=True)
class TaskRecord:
    """One task on disk. `server` names the process that ran it by number and start time."""

    id: str
    principal: str
    workspace: str
    kind: str
    title: str
    status: str
    started_at_s: float
    seconds: float
    server: tuple[int, int]
    output_file: str | None = None
    exit_code: int | None = None
    reason: str = ""
    output_from: int = 0
    answer: Mapping[str, Any] | None = None

    @property
    def server_is_alive(self) -> bool:
        pid, started = self.server
        process = living_process(pid)
        return process is not None and process.started == started


@dataclass(frozen=True)
class TaskRecords:
    """One small JSON file a task, written in one step."""

    state: StateDirectory
    workspace: Callable[[], str]
    warn: Warn = no_warning

    @property
    def _folder(self) -> Path:
        return self.state.folder("tasks")

    def write(self, task: Task) -> None:
        outcome = task.work.outcome
        path = task.work.output_file
        record = TaskRecord(
            id=task.id,
            principal=task.principal,
            workspace=self.workspace(),
            kind=task.work.kind,
            title=task.work.title[:2000],
            status=str(task.status),
            started_at_s=task.started_at_s,
            seconds=task.work.seconds,
            server=_this_process(),
            output_file=None if path is None else str(path),
            exit_code=None if outcome is None else outcome.exit_code,
            reason="" if outcome is None else outcome.reason,
            output_from=0 if outcome is None else outcome.output_from,
            answer=kept_answer(outcome),
        )
        write_private(self._path(task.id), json.dumps(asdict(record)).encode("ascii"))

    def find(self, task_id: str, principal: str) -> TaskRecord | None:
        """The record of an earlier task of this principal in this workspace, if its time is not over."""
        if not TASK_ID.match(task_id):
            return None
        record = self._read(self._path(task_id))
        if record is None or (record.principal, record.workspace) != (principal, self.workspace()):
            return None
        if record.status != TaskStatus.RUNNING and time.time() - record.started_at_s - record.seconds > KEEP_ENDED_S:
            return None
        return record

    def of(self, principal: str) -> list[TaskRecord]:
        """The records of this principal in this workspace."""
        found = [self.find(path.stem, principal) for path in self._folder.glob("*.json")]
        return [record for record in found if record is not None]

    def forget(self, task_id: str) -> None:
        self._path(task_id).unlink(missing_ok=True)

    def prune(self) -> None:
        """Delete records of tasks that ended over an hour ago, lost ones after 7 days, and torn temporary files."""
        now_s = time.time()
        with os.scandir(self._folder) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    age_s = now_s - entry.stat().st_mtime
                    if age_s > KEEP_LOST_S or (age_s > KEEP_ENDED_S and self._has_ended(Path(entry.path))):
                        Path(entry.path).unlink(missing_ok=True)

    def _has_ended(self, path: Path) -> bool:
        record = None if path.name.startswith(".") else self._read(path)
        return record is None or record.status != TaskStatus.RUNNING

    def _path(self, task_id: str) -> Path:
        return self._folder / f"{task_id}.json"

    def _read(self, path: Path) -> TaskRecord | None:
        try:
            fields = json.loads(path.read_text(encoding="utf-8"))
            return replace(TaskRecord(**fields), server=(int(fields["server"][0]), int(fields["server"][1])))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError, IndexError):
            # Set aside rather than deleted: somebody may want to know (R-CRASH-1). The task is then unknown.
            set_aside(path, self.warn)
            return None


@dataclass(frozen=True)
class LostTask:
    """The work of a task whose server is gone: nothing runs, but its output file may still be there."""

    record: TaskRecord

    @property
    def kind(self) -> str:
        return self.record.kind

    @property
    def title(self) -> str:
        return self.record.title

    @property
    def output_file(self) -> Path | None:
        return None if self.record.output_file is None else Path(self.record.output_file)

    @property
    def seconds(self) -> float:
        return self.record.seconds

    @property
    def outcome(self) -> TaskOutcome:
        if self.record.status == TaskStatus.RUNNING:
            return TaskOutcome(TaskStatus.ORPHANED, reason="the server that ran it was ended")
        record = self.record
        result, error = restored(record.answer)
        return TaskOutcome(
            TaskStatus(record.status), record.exit_code, record.reason, record.output_from, result, error
        )

    def output(self, max_chars: int, start: int) -> OutputPart:
        """Head and tail of the output file, whatever `start` says: who read what is not remembered."""
        if self.output_file is None:
            result = self.outcome.result
            return OutputPart("" if result is None else result.text[:max_chars], 0)
        try:
            with self.output_file.open("rb") as file:
                size = file.seek(0, os.SEEK_END) - self.record.output_from
                file.seek(self.record.output_from)
                if size <= HEAD_BYTES + TAIL_BYTES:
                    text = readable(file.read()).rstrip("\n")
                    is_short = len(text) <= max_chars
                    return OutputPart(text if is_short else cut(text, max_chars, self._where()), size, not is_short)
                head = readable(file.read(HEAD_BYTES))[:max_chars]
                file.seek(-TAIL_BYTES, os.SEEK_END)
                tail = readable(file.read()).rstrip("\n")[-max_chars:]
        except OSError:
            return OutputPart("[its output file is gone]", 0)
        return OutputPart(
            join_cut(head, tail, max_chars, f"about {size - max_chars} bytes", self._where()), size, truncated=True
        )

    async def wait(self, timeout_s: float | None) -> bool:
        return True

    async def stop(self) -> None:
        """Nothing runs any more: the guard has ended it with its server."""

    def _where(self) -> str:
        return f"; the whole is in {self.output_file}, which Read and Grep can open"


def _this_process() -> tuple[int, int]:
    process = living_process(os.getpid())
    return (os.getpid(), process.started if process is not None else 0)
