"""A program that runs over its three pipes under the guard: how it starts, and how it ends with all it has started.

Shell commands, which may go on in the background, are in `running_command`. Upstreams end in a way of their own."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar, cast

import anyio

from goat_mcp.core import platform
from goat_mcp.processes.asyncio_children import read_at_once
from goat_mcp.processes.memory_watch import watch_memory
from goat_mcp.processes.process_guard import MARKER_VARIABLE, ProcessGuard, guarded_start
from goat_mcp.processes.process_table import start_clock
from goat_mcp.processes.process_tree import ProcessTree
from goat_mcp.processes.stop_signals import unblocked_for_children
from goat_mcp.processes.tree_follower import TreeFollower
from goat_mcp.processes.windows_program import windows_start

_STDERR_TAIL_BYTES = 8 * 1024
_STDIN, _STDOUT, _STDERR = 0, 1, 2


class GuardedPipes(asyncio.SubprocessProtocol):
    """What the program prints: of its errors the end is kept, its output is the subclass's."""

    def __init__(self) -> None:
        self.exited = asyncio.Event()
        self._stderr = bytearray()
        self.stderr_bytes = 0
        """How much of errors it has printed so far."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        pipes = cast("asyncio.SubprocessTransport", transport)
        # Both, so that neither overtakes the other by that.
        for fd, take in ((_STDOUT, self.printed), (_STDERR, self._keep_stderr)):
            read_at_once(cast("asyncio.ReadTransport", pipes.get_pipe_transport(fd)), take)

    @property
    def stderr_tail(self) -> str:
        """The end of what it printed as errors."""
        return self.stderr_since(0)

    def stderr_since(self, mark: int) -> str:
        """The end of what it printed as errors after these bytes of them."""
        kept_from = self.stderr_bytes - len(self._stderr)
        return self._stderr[max(0, mark - kept_from) :].decode("utf-8", "replace").strip()

    def printed(self, data: bytes) -> None:
        """A piece of its output has come."""

    def output_ended(self) -> None:
        """Its output has ended; its own end may be seen later."""

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == _STDOUT:
            self.printed(data)
        else:
            self._keep_stderr(data)

    def _keep_stderr(self, data: bytes) -> None:
        self.stderr_bytes += len(data)
        self._stderr += data
        del self._stderr[:-_STDERR_TAIL_BYTES]

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == _STDOUT:
            self.output_ended()

    def process_exited(self) -> None:
        self.exited.set()


PipesT = TypeVar("PipesT", bound=GuardedPipes)


@dataclass(frozen=True)
class GuardedChild(Generic[PipesT]):
    """One that runs, or has ended and is not yet done with."""

    pipes: PipesT
    _transport: asyncio.SubprocessTransport
    _tree: ProcessTree
    _guard: ProcessGuard
    _follower: TreeFollower

    @property
    def stdin(self) -> asyncio.WriteTransport:
        return cast("asyncio.WriteTransport", self._transport.get_pipe_transport(_STDIN))

    @property
    def exit_code(self) -> int | None:
        """Negative if a signal ended it; None while it runs."""
        return self._transport.get_returncode()

    async def end(self, grace_s: float) -> None:
        """End it and all it has started: TERM, `grace_s`, KILL. Goes on when the caller is cancelled."""
        with anyio.CancelScope(shield=True):
            await self._tree.end(grace_s)
            with anyio.move_on_after(grace_s):
                await self.pipes.exited.wait()
        self._follower.stop()
        self._guard.forget(self._transport.get_pid())
        self._transport.close()


async def start_guarded(
    pipes: Callable[[], PipesT],
    arguments: Sequence[str],
    *,
    directory: Path,
    environment: Mapping[str, str],
    guard: ProcessGuard,
    is_command: bool = False,
    max_memory_bytes: int | None = None,
) -> GuardedChild[PipesT]:
    """Start a program; its caller has to `end` it. Raises `OSError` if it cannot be started.

    `is_command`: it is a user's command, as against a server of ours. `max_memory_bytes` is what it limits itself to.
    """
    guard.start()
    marker = guard.marker(secrets.token_hex(8))
    not_before = start_clock()
    environment = {**environment, MARKER_VARIABLE: marker}
    if platform.HAS_JOB_OBJECTS:
        arguments, variables = windows_start(arguments, environment)
        environment |= variables
    with unblocked_for_children():
        transport, protocol = await asyncio.get_running_loop().subprocess_exec(
            pipes,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment,
            cwd=directory,
            **guarded_start(),
        )
    pid = transport.get_pid()
    guard.watch(pid, is_command=is_command)
    if max_memory_bytes is not None:
        watch_memory(pid, max_memory_bytes)
    tree = ProcessTree(
        leader=pid, marker=f"{MARKER_VARIABLE}={marker}".encode(), not_before=not_before, jobs=guard.jobs
    )
    return GuardedChild(protocol, transport, tree, guard, TreeFollower(tree, guard, is_command=is_command))


TERM_GRACE_S = 1.0
"""A cancelled run is over within two seconds, with some of them left for KILL."""
DRAIN_S = 2.0
"""What a program leaves running may go on printing that long."""


@dataclass(frozen=True, slots=True)
class ProgramEnd:
    """`exit_code` is negative if a signal ended it. `stderr_tail` is the end of what it printed as errors."""

    exit_code: int
    stderr_tail: str
    timed_out: bool = False


async def run_program(
    arguments: Sequence[str],
    *,
    data: bytes,
    directory: Path,
    environment: Mapping[str, str],
    guard: ProcessGuard,
    on_output: Callable[[bytes], None],
    timeout_s: float,
    drain_s: float = DRAIN_S,
) -> ProgramEnd:
    """Run a program to its end, and then end all it has left. `on_output` gets its output in pieces, as they come.

    What it came to is judged by its own end: one that is done in time has not timed out, whatever of it still runs.

    Nothing of it runs any more when this returns, is cancelled, or raises: `OSError` if it cannot be started.
    """
    child = await start_guarded(
        lambda: _ProgramPipes(on_output),
        arguments,
        directory=directory,
        environment=environment,
        guard=guard,
        is_command=True,
    )
    pipes = child.pipes
    try:
        # A program that does not read it is none of our business.
        child.stdin.write(data)
        child.stdin.close()
        with anyio.move_on_after(timeout_s):
            await pipes.exited.wait()
        timed_out = not pipes.exited.is_set()
        if not timed_out:
            # A child that it has left running may hold its pipes open for as long as it likes.
            with anyio.move_on_after(drain_s):
                await pipes.closed.wait()
    finally:
        await child.end(TERM_GRACE_S)
    code = child.exit_code
    return ProgramEnd(-1 if code is None else code, pipes.stderr_tail, timed_out=timed_out)


class _ProgramPipes(GuardedPipes):
    def __init__(self, on_output: Callable[[bytes], None]) -> None:
        super().__init__()
        self.closed = asyncio.Event()
        self._on_output = on_output

    def printed(self, data: bytes) -> None:
        self._on_output(data)

    def output_ended(self) -> None:
        self.closed.set()
