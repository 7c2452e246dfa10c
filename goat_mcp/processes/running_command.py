"""One shell command that runs, until nothing of it does any more. How it starts is `command_start`'s, what a caller is
told of it elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import time
from enum import StrEnum

import anyio
import anyio.to_thread

from goat_mcp.core import platform, posix
from goat_mcp.processes.bash_invocation import is_keeper, is_wrapper
from goat_mcp.processes.command_pipes import CommandPipes
from goat_mcp.processes.launch import Launch
from goat_mcp.processes.output_capture import OutputCapture
from goat_mcp.processes.pids_cgroup import CommandCgroup
from goat_mcp.processes.process_guard import ProcessGuard
from goat_mcp.processes.process_table import Process, command_line
from goat_mcp.processes.process_tree import TERM_GRACE_S, ProcessTree
from goat_mcp.processes.tree_follower import TreeFollower

QUIET_S = 0.2
DRAIN_S = 2.0
OUTPUT_LIMIT_BYTES = 5 * 1000**3
_REAP_S = 1.0
_LOOK_AGAIN_S = 2.0
_LATE_BY, _LATE_S = 0.1, 0.02
"""If no descriptor reports an exit it is seen late: by this share of what the command took, and at most so long."""


class EndedBy(StrEnum):
    """Why a command was ended before it ended itself."""

    TIMEOUT = "timeout"
    OUTPUT = "output"
    STOP = "stop"


class RunningCommand:
    """A script in a bash of its own, with everything it starts.

    Two moments matter: `ended` is when bash has exited and its output was drained (200 ms of quiet, 2 s at most;
    waiting for the pipe's end would hang on `server & echo started`); `gone` is when nothing it started runs.
    Only for the event loop that started it.

    The report pipe does double duty: bash writes its last directory to it, and because every child inherits it
    and nobody else has it, its end says that all of them are gone without looking at the process table.

    In a sandbox with processes of its own the first process is the sandbox and lives as long as anything in it. That
    bash has ended comes by the status pipe then, as does the sign that the sandbox was ever up.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        tree: ProcessTree,
        pipes: CommandPipes,
        capture: OutputCapture,
        guard: ProcessGuard,
        *,
        started_s: float,
        launch: Launch | None = None,
        cgroup: CommandCgroup | None = None,
    ) -> None:
        self.capture = capture
        self.started_s = started_s
        self.ended_by: EndedBy | None = None
        self.left_running: tuple[str, ...] = ()
        self.ended = asyncio.Event()
        self.gone = asyncio.Event()
        self.duration_s: float | None = None
        """How long bash ran, once it has ended."""
        self.put_right: tuple[str, ...] = ()
        """What of the workspace had to be put right after it, in words."""
        self.gone_after_s: float | None = None
        self._process = process
        self._tree = tree
        self._pipes = pipes
        self._guard = guard
        self._loop = asyncio.get_running_loop()
        self._exited = asyncio.Event()
        self._reaped = asyncio.Event()
        self._launch = self._to_finish = launch
        self._cgroup = cgroup
        self._released = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._ending: asyncio.Task[None] | None = None
        pipes.listen(self._printed, self._exited.set)
        self._watch_exit()
        self._follower = TreeFollower(tree, guard)
        self._supervisor = asyncio.create_task(self._supervise())

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """As shells show it: 128 plus the number of the signal that ended bash; None while it runs."""
        if (reported := self._pipes.reported_exit_code) is not None:
            return reported
        code = self._process.returncode
        return code if code is None or code >= 0 else 128 - code

    @property
    def sandbox_failed(self) -> bool:
        """Whether it ended because its sandbox could not be set up: nothing of the script ran then."""
        return (
            self._launch is not None and self.ended_by is None and self.ended.is_set() and not self._pipes.is_sandbox_up
        )

    @property
    def directory(self) -> str | None:
        """Where the script stood at its end; None if it did not say."""
        return self._pipes.directory

    async def wait_ended(self, timeout_s: float | None) -> bool:
        """Wait until the command has ended. Returns False when the time is up first."""
        return await _within(self.ended, timeout_s)

    async def wait_gone(self, timeout_s: float | None) -> bool:
        return await _within(self.gone, timeout_s)

    def end_at(self, after_start_s: float) -> None:
        """End the command when it has run for so long. A later call replaces an earlier one."""
        if self._timer is not None:
            self._timer.cancel()
        left_s = max(0.0, after_start_s - (time.monotonic() - self.started_s))
        self._timer = self._loop.call_later(left_s, self.begin_end, EndedBy.TIMEOUT)

    def begin_end(self, reason: EndedBy, grace_s: float = TERM_GRACE_S) -> None:
        """Start to end the command and all it started. Does nothing to one that is gone."""
        if self._ending is None and not self.gone.is_set():
            self.ended_by = reason
            self._ending = asyncio.create_task(self._end(grace_s))

    async def end(self, reason: EndedBy = EndedBy.STOP, grace_s: float = TERM_GRACE_S) -> None:
        """End the command and all it started: TERM, `grace_s`, KILL. Goes on when the caller is cancelled."""
        self.begin_end(reason, grace_s)
        await self.gone.wait()

    def _watch_exit(self) -> None:
        if platform.HAS_PIDFD:
            with contextlib.suppress(OSError):
                descriptor = posix.pidfd_open(self.pid)
                self._pipes.watch(descriptor, lambda: self._on_exit(descriptor))
                return
        self._look_for_exit()

    def _look_for_exit(self) -> None:
        """A thread each that waits would leave none for other work when many commands run in the background."""
        if self._process.poll() is not None:
            self._on_exit(None)
            return
        so_far_s = time.monotonic() - self.started_s
        self._loop.call_later(min(_LATE_BY * so_far_s, _LATE_S), self._look_for_exit)

    def _on_exit(self, descriptor: int | None) -> None:
        if descriptor is not None:
            self._pipes.close(descriptor)
        self._process.wait()
        # What was written before the exit is in the pipes by now.
        self._pipes.read_what_is_there()
        self._exited.set()
        self._reaped.set()

    def _printed(self, data: bytes) -> None:
        self.capture.add(data)
        if self.capture.total > OUTPUT_LIMIT_BYTES:
            self.begin_end(EndedBy.OUTPUT, grace_s=0.0)

    async def _supervise(self) -> None:
        await _first(self._exited, self._released)
        await self._drain()
        self.duration_s = time.monotonic() - self.started_s
        left = await self._left()
        self.left_running = tuple(dict.fromkeys(_shown(one) for one in left))
        if not left and self._ending is None:
            await self._put_right()
        elif self._ending is not None and self._launch is not None:
            # Its answer says that it was ended: then the workspace is in order, too.
            await self._released.wait()
            await self._put_right()
        self.ended.set()
        while left and not self._released.is_set():
            await self._something_closes_or(_LOOK_AGAIN_S)
            left = await self._left()
        if self._ending is None and not await _within(self._reaped, DRAIN_S):
            # The sandbox itself should have followed what was in it.
            self._ending = asyncio.create_task(self._end(0.0))
        if self._ending is not None:
            await self._released.wait()
        await self._put_right()
        self._finish()

    async def _left(self) -> list[Process]:
        """What of the command still runs, the sandbox that it runs in aside."""
        if not self._may_have_left_something():
            return []
        members = await anyio.to_thread.run_sync(self._tree.members)
        if not self._tree.leader_is_outside:
            return members
        return [
            one for one in members if self.pid not in (one.pid, one.parent) and not is_keeper(command_line(one.pid))
        ]

    async def _put_right(self) -> None:
        """Undo what the sandbox needed to be there, once."""
        launch, self._to_finish = self._to_finish, None
        if launch is not None and not launch.leaves_nothing:
            self.put_right = await anyio.to_thread.run_sync(launch.finish)

    async def _drain(self) -> None:
        """Take what still arrives: until it ends, is quiet for 200 ms, or 2 s are over."""
        deadline_s = time.monotonic() + DRAIN_S
        while self._pipes.may_print_more and (left_s := deadline_s - time.monotonic()) > 0:
            self._pipes.activity.clear()
            if not await _within(self._pipes.activity, min(QUIET_S, left_s)):
                return

    def _may_have_left_something(self) -> bool:
        """Cheap, and certain when it says no but for one that closed the pipe and left the group."""
        if self._released.is_set():
            return False
        if self._pipes.has_reporters:
            return True
        if not platform.HAS_PROCESS_GROUPS:
            return False
        try:
            posix.killpg(self.pid, 0)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    async def _something_closes_or(self, timeout_s: float) -> None:
        deadline_s = time.monotonic() + timeout_s
        open_before = self._pipes.number_open
        while self._pipes.number_open == open_before and not self._released.is_set():
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                return
            self._pipes.activity.clear()
            await _within(self._pipes.activity, left_s)

    async def _end(self, grace_s: float) -> None:
        try:
            await self._tree.end(grace_s)
            await _within(self._reaped, _REAP_S)
        finally:
            self._released.set()
            self._pipes.activity.set()

    def _finish(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._pipes.close_all()
        self.capture.close()
        self._follower.stop()
        self._guard.forget(self.pid)
        if self._cgroup is not None:
            self._cgroup.remove()
        self.gone_after_s = time.monotonic() - self.started_s
        self.gone.set()


def signal_name(exit_code: int) -> str:
    """`SIGKILL` for exit codes that say a signal ended the command, else empty."""
    try:
        return signal.Signals(exit_code - 128).name
    except ValueError:
        return ""


def _shown(process: Process) -> str:
    """What a person calls a process that a script has left running."""
    line = command_line(process.pid)
    return "a part of the script" if is_wrapper(line) else line or process.name


async def _within(event: asyncio.Event, timeout_s: float | None) -> bool:
    if event.is_set():
        return True
    try:
        async with asyncio.timeout(timeout_s):
            await event.wait()
    except TimeoutError:
        return event.is_set()
    return True


async def _first(*events: asyncio.Event) -> None:
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in waiting:
            one.cancel()
