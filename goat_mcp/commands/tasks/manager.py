"""All background tasks of the process: start, find, stop; and their resources `goat://tasks` and `goat://tasks/ID`."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import secrets
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import anyio

from goat_mcp.commands.tasks.records import KEEP_ENDED_S, TASK_ID, LostTask, TaskRecord, TaskRecords
from goat_mcp.commands.tasks.task import Task, TaskStatus, TaskWork
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError, cut_middle
from goat_mcp.core.resources import Announcements, Reading, json_entry, json_reading, last_part, template
from goat_mcp.state.database import Warn
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.private_file import no_warning

if TYPE_CHECKING:  # for one of several replicas
    from goat_mcp.commands.tasks.team_tasks import TeamTasks

TASKS_URI = "goat://tasks"
WATCH_EVERY_S = 1.0
"""How often watched tasks are checked for new output."""
RECORD_WAIT_S = 2.0
MAX_RUNNING = 32
MAX_ENDED = 100
"""Ended tasks in memory; older ones are shown from their record and output file."""
ID_BYTES = 20
_SHOWN_TITLE_CHARS = 60


class TaskManager:
    """Background work by id (R-PROC-9): at most 32 run, ended ones are kept for an hour, ids are bound to the
    principal that started them, and a foreign id is as unknown as a made-up one.

    `workspace` names the workspace of the tasks, or returns its name: after a restart, records of the same workspace
    are found again. Starts, ends and, while somebody watches, output are announced under `goat://tasks` and
    `goat://tasks/ID`.
    """

    def __init__(
        self,
        state: StateDirectory,
        workspace: str | Callable[[], str] = "",
        *,
        max_running: int = MAX_RUNNING,
        announcements: Announcements | None = None,
        warn: Warn = no_warning,
        team: TeamTasks | None = None,
    ) -> None:
        """`team`: the tasks of all replicas, if this server is one of several."""
        self._team = team
        self._warn = warn
        self._records = TaskRecords(state, workspace if callable(workspace) else lambda: workspace, warn)
        self._max_running = max_running
        self._tasks: dict[str, Task] = {}
        self._watchers: dict[str, asyncio.Task[None]] = {}
        self._pruned = False
        self._announcements = announcements or Announcements()

    def check_room(self) -> None:
        """Raises `ToolError(BUSY)` when no task can be started now, naming those that run."""
        running = [task for task in self._tasks.values() if task.status is TaskStatus.RUNNING]
        if len(running) >= self._max_running:
            raise ToolError(
                ErrorCode.BUSY,
                f"{len(running)} background tasks run already, which is the most there can be",
                "Stop one that is not needed with TaskStop, or wait for one with TaskOutput.",
            )

    async def adopt(
        self,
        work: TaskWork,
        *,
        principal: str,
        session_key: str = "",
        task_id: str = "",
        name: str = "",
        restart_data: Mapping[str, Any] | None = None,
    ) -> Task:
        """Make running work a task. Raises `ToolError(BUSY)` when there is no room; the work then goes on as it is.

        `task_id` is one of `new_task_id`; that of a task that has ended takes its place. `restart_data`: see `Task`.
        """
        if (earlier := self._watchers.get(task_id)) is not None:
            await asyncio.wait([earlier])  # it still writes the end of the earlier one
        self.check_room()
        self._forget_old()
        task_id = task_id or new_task_id()
        task = Task(task_id, principal, work, name=name, started_by=session_key, restart_data=restart_data)
        self._tasks[task_id] = task
        # Before anybody knows its id.
        with contextlib.suppress(OSError):  # a record is a convenience after a restart; the task does not need it
            await anyio.to_thread.run_sync(self._records.write, task)
        await self._tell_team(task)
        self._watchers[task_id] = asyncio.create_task(self._watch(task))
        self._announcements.changed(TASKS_URI, principal)
        return task

    async def find(self, task_id: str, principal: str) -> Task:
        """The task with this id, or else this name. Raises `ToolError(TASK_UNKNOWN)` listing the principal's running
        tasks."""
        self._forget_old()
        task = self._tasks.get(task_id) or self._named(task_id, principal)
        if task is not None and secrets.compare_digest(task.principal.encode(), principal.encode()):
            return task
        record = None
        if task is None:
            record = await anyio.to_thread.run_sync(self._records.find, task_id, principal)
            if record is None and self._team is not None and TASK_ID.match(task_id):
                task = await self._team.find(task_id, principal)
                if task is not None:
                    return task
        if record is None or _runs_elsewhere(record):
            raise self._unknown(task_id, principal)
        return _lost(record)

    async def runs_elsewhere(self, task_id: str, principal: str) -> bool:
        """Whether another replica runs it, or another process that shares our state directory. Raises `ToolError(IO)`
        if only the shared state could say."""
        if task_id in self._tasks:
            return False
        if self._team is not None and not self._team.held.is_held(task_id):
            elsewhere = await self._team.find(task_id, principal)
            if elsewhere is not None and elsewhere.status is TaskStatus.RUNNING:
                return True
        record = await anyio.to_thread.run_sync(self._records.find, task_id, principal)
        return record is not None and _runs_elsewhere(record)

    async def known(self, principal: str) -> list[Task]:
        """All tasks of a principal in this workspace, newest first; those of an earlier process too."""
        self._forget_old()
        records = await anyio.to_thread.run_sync(self._records.of, principal)
        lost = [_lost(record) for record in records if record.id not in self._tasks and not _runs_elsewhere(record)]
        mine = [task for task in self._tasks.values() if task.principal == principal]
        here = {task.id for task in (*mine, *lost)}
        others = await self._team.known(principal) if self._team is not None else []
        mine += [task for task in others if task.id not in here]
        return sorted([*mine, *lost], key=lambda task: task.started_at_s, reverse=True)

    def running(self, principal: str | None = None) -> list[Task]:
        """Running tasks, oldest first; of one principal or of all."""
        return [
            task
            for task in self._tasks.values()
            if task.status is TaskStatus.RUNNING and principal in (None, task.principal)
        ]

    async def stop(self, task: Task) -> None:
        """End a task with all it started; one that has ended is left alone."""
        if task.status is not TaskStatus.RUNNING:
            return
        await task.work.stop()
        if self._team is not None and (watcher := self._watchers.get(task.id)) is not None:
            await asyncio.wait([watcher], timeout=RECORD_WAIT_S)  # or another replica could go on with it

    async def stop_started_by(self, session_key: str) -> list[Task]:
        """End the running tasks of a session that is over, e.g. of a stopped agent. Returns them."""
        tasks = [task for task in self.running() if task.started_by == session_key]
        await asyncio.gather(*(self.stop(task) for task in tasks))
        return tasks

    async def forget(self, task: Task) -> None:
        """Remove all traces of a task that has ended; its output file is its work's own."""
        if self._tasks.get(task.id) is not task:
            return
        await self._forget_here(task)
        if self._team is not None:
            with contextlib.suppress(ToolError):
                await self._team.forget(task)

    async def _forget_here(self, task: Task) -> None:
        watcher = self._watchers.get(task.id)
        if watcher is not None:
            await asyncio.wait([watcher])
        self._tasks.pop(task.id, None)
        self._announcements.changed(TASKS_URI, task.principal)
        with contextlib.suppress(OSError):
            await anyio.to_thread.run_sync(self._records.forget, task.id)

    def local(self, task_id: str, principal: str) -> Task | None:
        """A task of this process, which another replica asks for."""
        task = self._tasks.get(task_id)
        return task if task is not None and task.principal == principal else None

    async def stop_taken(self, task_id: str) -> None:
        """End what another replica goes on with, or is to go on with: nothing of that is recorded here."""
        if (task := self._tasks.get(task_id)) is not None:
            await self.stop(task)
            await self._forget_here(task)

    async def _tell_team(self, task: Task) -> None:
        """Keep its record where the other replicas find it. Without the shared state they do not know it."""
        if self._team is not None:
            try:
                await self._team.record(task)
            except ToolError as problem:
                self._warn("the other replicas do not know of a task", task=task.id, problem=str(problem))

    async def stop_all(self) -> None:
        """End every task, at the end of the server."""
        await asyncio.gather(*(self.stop(task) for task in self.running()))
        await asyncio.gather(*self._watchers.values())

    async def _watch(self, task: Task) -> None:
        """Keep the record on disk while the task runs, and once it has ended."""
        if not self._pruned:
            self._pruned = True
            with contextlib.suppress(OSError):
                await anyio.to_thread.run_sync(self._records.prune)
        await self._announce_output(task)
        task.ended_at_s = time.time()
        self._announcements.changed(TASKS_URI, task.principal)
        self._announcements.changed(f"{TASKS_URI}/{task.id}", task.principal)
        with contextlib.suppress(OSError):
            await anyio.to_thread.run_sync(self._records.write, task)
        await self._tell_team(task)
        self._watchers.pop(task.id, None)

    def _named(self, name: str, principal: str) -> Task | None:
        """The newest task that its starter gave this name; one that runs goes before those that have ended."""
        named = [task for task in self._tasks.values() if name and (task.name, task.principal) == (name, principal)]
        return max(named, key=lambda task: (task.status is TaskStatus.RUNNING, task.started_at_s), default=None)

    async def _announce_output(self, task: Task) -> None:
        """Announce new output until the task has ended, if somebody watches."""
        uri = f"{TASKS_URI}/{task.id}"
        seen = 0
        while not await task.work.wait(WATCH_EVERY_S):
            if not self._announcements.is_watched(uri, task.principal):
                continue
            with contextlib.suppress(OSError):
                before, seen = seen, task.work.output(1, seen).end
                if seen != before:
                    self._announcements.changed(uri, task.principal)

    def _forget_old(self) -> None:
        oldest_s = time.time() - KEEP_ENDED_S
        ended = sorted((task.ended_at_s, task.id) for task in self._tasks.values() if task.ended_at_s is not None)
        for index, (ended_at_s, task_id) in enumerate(reversed(ended)):
            if ended_at_s < oldest_s:
                del self._tasks[task_id]
                with contextlib.suppress(OSError):
                    self._records.forget(task_id)
            elif index >= MAX_ENDED:
                del self._tasks[task_id]

    def _unknown(self, task_id: str, principal: str) -> ToolError:
        known = [
            f"{task.id} ({task.name or cut_middle(' '.join(task.work.title.split()), _SHOWN_TITLE_CHARS)})"
            for task in self.running(principal)
        ]
        return ToolError(
            ErrorCode.TASK_UNKNOWN,
            f"no task {cut_middle(task_id, 80)!r}",
            f"Running tasks: {', '.join(known)}." if known else "No background task is running.",
            facts={"running": [task.id for task in self.running(principal)]},
        )


def new_task_id() -> str:
    """Base 32 of 160 random bits: no upper case and no signs that a model could copy wrongly."""
    return base64.b32encode(secrets.token_bytes(ID_BYTES)).decode("ascii").lower()


def _lost(record: TaskRecord) -> Task:
    return Task(record.id, record.principal, LostTask(record), record.started_at_s)


def _runs_elsewhere(record: TaskRecord) -> bool:
    """Whether the task runs in another process."""
    return record.status == TaskStatus.RUNNING and record.server_is_alive


_TITLE_CHARS = 2000


class TaskResources:
    entries = (json_entry(TASKS_URI, "tasks", "Your background tasks, newest first: what they are and how they do"),)
    templates = (template(f"{TASKS_URI}/{{id}}", "task", "One background task: status and output", "application/json"),)

    def __init__(self, tasks: TaskManager, max_chars: int) -> None:
        """`max_chars` bounds the output of a task that one reading shows: its head and tail."""
        self._tasks = tasks
        self._max_chars = max_chars

    async def read(self, uri: str, ctx: ToolContext) -> Reading | None:
        if uri == TASKS_URI:
            tasks = await self._tasks.known(ctx.principal)
            return json_reading({"tasks": [_task_facts(task) for task in tasks]})
        task_id = last_part(uri, f"{TASKS_URI}/")
        if task_id is None:
            return None
        try:
            task = await self._tasks.find(task_id, ctx.principal)
        except ToolError:
            return None
        if task.id != task_id:
            return None  # found by a name, under which no change is announced
        part = task.work.output(self._max_chars, 0)
        return json_reading({**_task_facts(task), "output": part.text, "truncated": part.truncated})


def _task_facts(task: Task) -> dict[str, Any]:
    outcome = task.work.outcome
    path = task.work.output_file
    return {
        "id": task.id,
        "uri": f"{TASKS_URI}/{task.id}",
        "kind": task.work.kind,
        "title": task.work.title[:_TITLE_CHARS],
        "status": str(task.status),
        "exit_code": None if outcome is None else outcome.exit_code,
        "reason": "" if outcome is None else outcome.reason,
        "started_at": datetime.fromtimestamp(task.started_at_s, UTC).isoformat(timespec="seconds"),
        "seconds": round(task.work.seconds, 1),
        "output_file": None if path is None else str(path),
    }
