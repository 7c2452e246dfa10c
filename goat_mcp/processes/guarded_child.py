"""A program that runs over its three pipes under the guard: how it is started, and how it ends with all it has started.

What is said over the pipes is up to who starts it. Commands of a shell are `running_command`'s, which may outlive the
call that started them, and upstreams have a way of their own to end.
"""

from __future__ import annotations

import asyncio
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar, cast

import anyio

from goat_mcp.processes.process_guard import MARKER_VARIABLE, ProcessGuard
from goat_mcp.processes.process_tree import ProcessTree, boot_ticks
from goat_mcp.processes.read_at_once import read_at_once
from goat_mcp.processes.stop_signals import unblocked_for_children

_COMPLAINT_BYTES = 8 * 1024
_STDIN, _STDOUT, _STDERR = 0, 1, 2


class GuardedPipes(asyncio.SubprocessProtocol):
    """What the program prints: of its errors the end is kept, its output is the subclass's."""

    def __init__(self) -> None:
        self.exited = asyncio.Event()
        self._complaint = bytearray()
        self.complained_bytes = 0
        """How much of errors it has printed so far."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        pipes = cast("asyncio.SubprocessTransport", transport)
        # Both, so that neither overtakes the other by that.
        for fd, take in ((_STDOUT, self.printed), (_STDERR, self._complained)):
            read_at_once(cast("asyncio.ReadTransport", pipes.get_pipe_transport(fd)), take)

    @property
    def complaint(self) -> str:
        """The end of what it printed as errors."""
        return self.complaint_since(0)

    def complaint_since(self, mark: int) -> str:
        """The end of what it printed as errors after these bytes of them."""
        kept_from = self.complained_bytes - len(self._complaint)
        return self._complaint[max(0, mark - kept_from) :].decode("utf-8", "replace").strip()

    def printed(self, data: bytes) -> None:
        """A piece of its output has come."""

    def output_ended(self) -> None:
        """Its output has ended; its own end may be seen later."""

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == _STDOUT:
            self.printed(data)
        else:
            self._complained(data)

    def _complained(self, data: bytes) -> None:
        self.complained_bytes += len(data)
        self._complaint += data
        del self._complaint[:-_COMPLAINT_BYTES]

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

    @property
    def stdin(self) -> asyncio.WriteTransport:
        return cast("asyncio.WriteTransport", self._transport.get_pipe_transport(_STDIN))

    @property
    def exit_code(self) -> int | None:
        """Negative where a signal ended it; None while it runs."""
        return self._transport.get_returncode()

    async def end(self, grace_s: float) -> None:
        """End it and all it has started: TERM, `grace_s`, KILL. Goes on when the caller is cancelled."""
        with anyio.CancelScope(shield=True):
            await self._tree.end(grace_s)
            with anyio.move_on_after(grace_s):
                await self.pipes.exited.wait()
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
) -> GuardedChild[PipesT]:
    """Start a program; its caller has to `end` it. Raises `OSError` where it cannot be started.

    `is_command`: it is a user's command, as against a server of ours.
    """
    guard.start()
    marker = guard.marker(secrets.token_hex(8))
    not_before = boot_ticks()
    with unblocked_for_children():
        transport, protocol = await asyncio.get_running_loop().subprocess_exec(
            pipes,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**environment, MARKER_VARIABLE: marker},
            cwd=directory,
            start_new_session=sys.platform != "win32",
        )
    pid = transport.get_pid()
    guard.watch(pid, is_command=is_command)
    tree = ProcessTree(leader=pid, marker=f"{MARKER_VARIABLE}={marker}".encode(), not_before=not_before)
    return GuardedChild(protocol, transport, tree, guard)
