"""All that one command started: finding it and ending it. Which commands there are is no matter of this module."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import anyio

from goat_mcp.core import platform, posix
from goat_mcp.processes.process_table import (
    Process,
    environment_contains,
    has_open,
    living_process,
    living_processes,
)
from goat_mcp.processes.windows_job import Jobs

TERM_GRACE_S = 2.0
_KILL_ROUNDS = 60
_KILL_PAUSE_S = 0.03


@dataclass(frozen=True)
class ProcessTree:
    """The processes of one command, whose first process leads a group and session of its own.

    A process belongs here if it is in the group or session, has a member for a parent, did so when `members` looked
    before, was started with the command's marker in its environment, or holds the command's pipe open. The last two
    find what left by `setsid`; only a process that did that *and* changed its environment *and* closed its descriptors
    before anybody looked is not found.

    Without `/proc` no pipe can be looked for, and not every environment can be read: `TreeFollower` looks meanwhile.

    Attributes:
        leader: number of the first process; also that of its group and session.
        marker: `NAME=value` in the environment of all of them.
        pipe: link of a pipe they inherited, e.g. `pipe:[4711]`; empty if it has no name.
        not_before: nothing that started earlier (see `start_clock`) can belong here.
        leader_is_outside: the first process only holds the sandbox of the others; its end by TERM would KILL them.
        before_kill: called once before KILL.
        jobs: they know the members, and end them, on a system that has jobs.
    """

    leader: int
    marker: bytes
    pipe: str = ""
    not_before: int = 0
    leader_is_outside: bool = False
    before_kill: Callable[[], None] | None = None
    jobs: Jobs | None = None
    _seen: dict[int, int] = field(default_factory=dict[int, int], init=False, repr=False, compare=False)

    def members(self) -> list[Process]:
        """Those that still run. Reads the whole process table: some milliseconds."""
        if self.jobs is not None:
            members = self.jobs.members(self.leader)
            return [Process(one.pid, parent=0, group=0, session=0, name=one.name, started=0) for one in members]
        table = [process for process in living_processes() if process.pid != os.getpid()]
        table = [process for process in table if process.started >= self.not_before or not process.started]
        inside = {process.pid for process in table if self._is_inside(process)}
        while children := {process.pid for process in table if process.parent in inside} - inside:
            inside |= children
        found = [process for process in table if process.pid in inside]
        self._seen.update((process.pid, process.started) for process in found)
        for gone in self._seen.keys() - inside:
            self._seen.pop(gone, None)
        return found

    def _is_inside(self, process: Process) -> bool:
        if self.leader in (process.pid, process.group, process.session):
            return True
        if self._seen.get(process.pid) == process.started:
            return True
        return environment_contains(process.pid, self.marker) or (bool(self.pipe) and has_open(process.pid, self.pipe))

    async def end(self, grace_s: float = TERM_GRACE_S) -> bool:
        """TERM to all, `grace_s` to leave, then KILL until nobody is left. Returns whether that was reached."""
        if self.jobs is not None:
            return await self._end_job(self.jobs)
        deadline_s = time.monotonic() + grace_s
        termed: set[tuple[int, int]] = set()
        pause_s = 0.01
        while members := await anyio.to_thread.run_sync(self.members):
            if time.monotonic() >= deadline_s:
                break
            self._signal([one for one in members if (one.pid, one.started) not in termed], signal.SIGTERM)
            termed.update((one.pid, one.started) for one in members)
            await anyio.sleep(min(pause_s, max(0.0, deadline_s - time.monotonic())))
            pause_s = min(pause_s * 2, 0.1)
        if members and self.before_kill is not None:
            self.before_kill()
        for _ in range(_KILL_ROUNDS):
            if not members:
                return True
            self._signal(members, posix.SIGKILL)
            await anyio.sleep(_KILL_PAUSE_S)
            members = await anyio.to_thread.run_sync(self.members)
        return not members

    async def _end_job(self, jobs: Jobs) -> bool:
        """At once: nothing in a job hears a TERM."""
        for _ in range(_KILL_ROUNDS):
            jobs.terminate(self.leader)
            if not jobs.members(self.leader):
                return True
            await anyio.sleep(_KILL_PAUSE_S)
        return False

    def _signal(self, members: Iterable[Process], number: signal.Signals) -> None:
        for member in members:
            if number is signal.SIGTERM and self.leader_is_outside and member.pid == self.leader:
                continue
            send_signal(member, number)
            if number is signal.SIGTERM:
                # One that is stopped would otherwise not see it before KILL.
                send_signal(member, posix.SIGCONT)


def send_signal(process: Process, number: signal.Signals) -> None:
    """Signal exactly this process, never one that got its number since. A process that is gone is no error."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        descriptor = -1
        if platform.HAS_PIDFD:
            with contextlib.suppress(OSError):  # an old kernel, no descriptor left, or it is gone
                descriptor = posix.pidfd_open(process.pid)
        try:
            now = living_process(process.pid)
            if now is None or now.started != process.started:
                return
            if descriptor >= 0:
                posix.pidfd_send_signal(descriptor, number)
            else:
                os.kill(process.pid, number)
        finally:
            if descriptor >= 0:
                os.close(descriptor)
