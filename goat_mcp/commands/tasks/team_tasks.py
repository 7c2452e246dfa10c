"""Background tasks as all replicas of a server know them: who runs each, and how it ended.

A task is recorded before its id is given away. Its replica runs it; another one reads and stops it there. What a
replica that is gone had begun is never run again: its record says that it may have taken effect. Only an agent goes on
elsewhere, after the last turn that was recorded (`held_work`).
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Protocol, cast

import anyio

from goat_mcp.commands.tasks.held_work import HeldWork, restart_key
from goat_mcp.commands.tasks.kept_answer import kept_answer, restored
from goat_mcp.commands.tasks.records import KEEP_ENDED_S, KEEP_LOST_S
from goat_mcp.commands.tasks.task import Task, TaskOutcome, TaskStatus
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.processes.output_capture import OutputPart
from goat_mcp.state.replicas.lease import Scripts
from goat_mcp.state.replicas.registry import ReplicaRegistry
from goat_mcp.state.replicas.replica import Replica
from goat_mcp.web.hops.client import HopClient, ReplicaLost

PATH = "/tasks/"
"""Where replicas serve this."""
READ, STOP = f"{PATH}read", f"{PATH}stop"
KEPT_CHARS = 20_000
"""Of the output of a task that has ended: its file is at the replica that ran it."""
_MAX_KNOWN = 200
_LOOK_RETRY_S = 0.5
_WRITE = """
redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[4])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', ARGV[3] - ARGV[5])
redis.call('EXPIRE', KEYS[2], ARGV[5])
return 1
"""
_READ = "return redis.call('GET', KEYS[1])"
_OF = "return redis.call('ZREVRANGE', KEYS[1], 0, ARGV[1])"
_FORGET = "redis.call('ZREM', KEYS[2], ARGV[1]) return redis.call('DEL', KEYS[1])"


class Sealed(Protocol):
    """Encrypts records: a command or its output may hold secrets."""

    def sealed(self, name: str, text: str) -> str: ...

    def opened(self, name: str, sealed: str) -> str | None: ...


@dataclass(frozen=True)
class TeamRecord:
    """One task. `replica` and `fence` name the process that runs it, or ran it. `is_resumable`: if that ends,
    another one goes on with it."""

    id: str
    principal: str
    workspace: str
    kind: str
    title: str
    status: str
    started_at_s: float
    seconds: float
    replica: str
    fence: int
    name: str = ""
    output_file: str | None = None
    exit_code: int | None = None
    reason: str = ""
    output: str = ""
    output_end: int = 0
    truncated: bool = False
    is_resumable: bool = False
    answer: Mapping[str, Any] | None = None

    @classmethod
    def read(cls, text: str) -> TeamRecord:
        """Members that another version has are left out."""
        known = {field.name for field in fields(cls)}
        members = cast("dict[str, Any]", json.loads(text))
        return cls(**{name: value for name, value in members.items() if name in known})

    @classmethod
    def of(cls, task: Task, workspace: str, me: Replica) -> TeamRecord:
        """As it is now."""
        work, outcome = task.work, task.work.outcome
        part = work.output(KEPT_CHARS, 0)
        return cls(
            id=task.id,
            principal=task.principal,
            workspace=workspace,
            kind=work.kind,
            title=work.title[:2000],
            status=str(task.status),
            started_at_s=task.started_at_s,
            seconds=work.seconds,
            replica=me.name,
            fence=me.fence,
            name=task.name,
            output_file=None if work.output_file is None else str(work.output_file),
            exit_code=None if outcome is None else outcome.exit_code,
            reason="" if outcome is None else outcome.reason,
            output=part.text,
            output_end=part.end,
            truncated=part.truncated,
            is_resumable=task.restart_data is not None,
            answer=kept_answer(outcome),
        )


class TeamTasks:
    """`workspace` names the one that tasks of this server are in."""

    def __init__(
        self,
        state: Scripts,
        seal: Sealed,
        registry: ReplicaRegistry,
        hops: HopClient,
        workspace: Callable[[], str],
    ) -> None:
        self.held = HeldWork(state, registry)
        self._state = state
        self._seal = seal
        self._registry = registry
        self._hops = hops
        self._workspace = workspace

    async def record(self, task: Task) -> None:
        """Keep it as it is now. Raises `ToolError(IO)`."""
        if self.held.is_handed_over(task.id) and task.status is not TaskStatus.RUNNING:
            return
        record = TeamRecord.of(task, self._workspace(), self._registry.me)
        if task.status is TaskStatus.RUNNING:
            record = replace(record, output="", output_end=0)
            if task.restart_data is not None and not self.held.is_held(task.id):
                await self.held.hold(task.id, self._seal.sealed(restart_key(task.id), json.dumps(task.restart_data)))
        await self._write(record)

    async def end(self, record: TeamRecord, status: TaskStatus, reason: str) -> None:
        """Work that this replica has claimed does not go on. Raises `ToolError(IO)`."""
        await self._write(replace(record, status=status, reason=reason, is_resumable=False))

    async def running(self, task_id: str) -> TeamRecord | None:
        """What is recorded of claimed work; None if it has ended. Raises `ToolError(IO)`."""
        record = await self._read(task_id)
        return record if record is not None and record.status == TaskStatus.RUNNING else None

    async def restart_data(self, task_id: str) -> Mapping[str, Any] | None:
        """What goes on with claimed work; None if it is not kept any more. Raises `ToolError(IO)`."""
        sealed: str | None = await self._state.run_script(_READ, [restart_key(task_id)], [])
        text = None if sealed is None else self._seal.opened(restart_key(task_id), sealed)
        if sealed is None or text is None:
            return None
        self.held.keep_restart_data(task_id, sealed)
        return json.loads(text)

    async def _write(self, record: TeamRecord) -> None:
        is_running = record.status == TaskStatus.RUNNING
        lasts_s = int(KEEP_LOST_S if is_running else KEEP_ENDED_S)
        key = _key(record.id)
        sealed = self._seal.sealed(key, json.dumps(asdict(record)))
        if self.held.is_held(record.id) and not await self.held.write(record.id, key, sealed, lasts_s=lasts_s):
            return  # another replica has it
        keys = [key, self._index(record.principal)]
        arguments = [sealed, lasts_s, int(record.started_at_s), record.id, int(KEEP_LOST_S)]
        await self._state.run_script(_WRITE, keys, arguments)
        if not is_running:
            await self.held.let_go(record.id)

    async def forget(self, task: Task) -> None:
        await self._state.run_script(_FORGET, [_key(task.id), self._index(task.principal)], [task.id])

    async def find(self, task_id: str, principal: str) -> Task | None:
        """The task of this principal in this workspace, wherever it runs or ran. Raises `ToolError`."""
        record = await self._read(task_id)
        if record is None or (record.principal, record.workspace) != (principal, self._workspace()):
            return None
        work = RemoteWork(record, self)
        if work.outcome is None:
            await work.wait(0)
        return Task(record.id, record.principal, work, record.started_at_s, record.name)

    async def known(self, principal: str) -> list[Task]:
        """All of a principal in this workspace, newest first, as they were recorded; none is asked how it does."""
        ids: list[str] = await self._state.run_script(_OF, [self._index(principal)], [_MAX_KNOWN])
        found: list[Task] = []
        for task_id in ids:
            record = await self._read(task_id)
            if record is not None and (record.principal, record.workspace) == (principal, self._workspace()):
                work = RemoteWork(record, self)
                if work.outcome is None and not record.is_resumable and await self._replica_of(record) is None:
                    work.lose()
                found.append(Task(record.id, record.principal, work, record.started_at_s, record.name))
        return found

    async def ask(self, path: str, record: TeamRecord, wait_s: float) -> TeamRecord | None:
        """The record as its replica has it after at most `wait_s`, or its end; None if that is gone. Raises
        `ToolError`."""
        until_s = time.monotonic() + wait_s
        while (replica := await self._replica_of(record)) is None:
            # It may have recorded its end before it went, or another one goes on.
            last = await self._read(record.id)
            if last is None or (last.status == TaskStatus.RUNNING and not last.is_resumable):
                return None
            if last.status != TaskStatus.RUNNING:
                return last
            if (last.replica, last.fence) != (record.replica, record.fence):
                record = last
            elif path == STOP:
                message = f"the replica {record.replica}, which ran it, has ended; another one goes on with it soon"
                raise ToolError(ErrorCode.BUSY, message, "Try again in some seconds.")
            elif time.monotonic() > until_s:
                return last
            else:
                await anyio.sleep(_LOOK_RETRY_S)
        wait_s = max(0.0, until_s - time.monotonic())
        body = json.dumps({"id": record.id, "principal": record.principal, "wait_s": wait_s}).encode()
        status, text = await self._asked(replica, path, body)
        if status == 404:
            return None
        if status != 200:
            raise ToolError(
                ErrorCode.NETWORK,
                f"the replica {replica.name}, which runs the task, answers with HTTP status {status}",
                "Try again in some seconds.",
            )
        return TeamRecord.read(text)

    async def _asked(self, replica: Replica, path: str, body: bytes) -> tuple[int, str]:
        """Status and body of its answer. Raises `ReplicaLost` also if its lease ends first: it may stand still."""
        answered: list[tuple[int, str]] = []
        problem: ToolError | None = None
        async with anyio.create_task_group() as group:

            async def give_up() -> None:
                await self._registry.until_gone(replica)
                group.cancel_scope.cancel()

            group.start_soon(give_up)
            try:
                async with self._hops.send(replica, "POST", path, headers={}, body=body) as answer:
                    answered.append((answer.status_code, (await answer.aread()).decode()))
            except ToolError as error:  # a group would wrap it
                problem = error
            group.cancel_scope.cancel()
        if not answered:
            raise problem or ReplicaLost(replica)
        return answered[0]

    async def _replica_of(self, record: TeamRecord) -> Replica | None:
        replica = await self._registry.find(record.replica)
        return replica if replica is not None and replica.fence == record.fence else None

    async def _read(self, task_id: str) -> TeamRecord | None:
        sealed: str | None = await self._state.run_script(_READ, [_key(task_id)], [])
        text = None if sealed is None else self._seal.opened(_key(task_id), sealed)
        return None if text is None else TeamRecord.read(text)

    def _index(self, principal: str) -> str:
        return f"tasks:of:{hashlib.sha256(principal.encode()).hexdigest()[:32]}"


def _key(task_id: str) -> str:
    return f"task:{task_id}"


@dataclass
class RemoteWork:
    """The work of a task of another replica, as it was when that was last asked."""

    record: TeamRecord
    team: TeamTasks

    @property
    def kind(self) -> str:
        return self.record.kind

    @property
    def title(self) -> str:
        return self.record.title

    @property
    def output_file(self) -> Path | None:
        return None  # it is at another replica: nobody here can open it

    @property
    def seconds(self) -> float:
        return self.record.seconds

    @property
    def outcome(self) -> TaskOutcome | None:
        if self.record.status == TaskStatus.RUNNING:
            return None
        result, error = restored(self.record.answer)
        return TaskOutcome(
            TaskStatus(self.record.status), self.record.exit_code, self.record.reason, result=result, error=error
        )

    def output(self, max_chars: int, start: int) -> OutputPart:
        """All that was there, whatever `start` says: who read what is known to the other replica only."""
        text = self.record.output
        shown = text if len(text) <= max_chars else text[-max_chars:]
        return OutputPart(shown, self.record.output_end, self.record.truncated or shown != text)

    async def wait(self, timeout_s: float | None) -> bool:
        if self.outcome is None:
            await self._ask(READ, 3600.0 if timeout_s is None else timeout_s)
        return self.outcome is not None

    async def stop(self) -> None:
        if self.outcome is None:
            await self._ask(STOP, 0)

    def lose(self) -> None:
        """Its replica has ended, and the work with it."""
        replica = self.record.replica
        why = f"the replica {replica}, which ran it, has ended; it may have taken effect, and is not run again"
        self.record = replace(self.record, status=TaskStatus.ORPHANED, reason=why)

    async def _ask(self, path: str, wait_s: float) -> None:
        until_s = time.monotonic() + wait_s
        while True:
            try:
                now = await self.team.ask(path, self.record, max(0.0, until_s - time.monotonic()))
                break
            except ToolError as problem:
                is_lost = isinstance(problem, ReplicaLost)
                if (is_lost or problem.code is ErrorCode.NETWORK) and self.record.is_resumable and path == READ:
                    # It runs, or another replica goes on with it once the lease is over.
                    if time.monotonic() > until_s:
                        return
                    await anyio.sleep(_LOOK_RETRY_S)
                    continue
                if not is_lost:
                    raise
                # Whether it has ended, its lease says.
                message = f"the replica {self.record.replica}, which runs the task, has broken off its answer"
                raise ToolError(ErrorCode.NETWORK, message, "Ask again in some seconds.") from None
        if now is None:
            self.lose()
        else:
            self.record = now
