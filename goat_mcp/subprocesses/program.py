"""One run of a program: what it is given on its standard input, what it prints as it prints it, how it ended.

Commands of a shell, which may go on in the background, are in `running_command`.
"""

from __future__ import annotations

import asyncio
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import anyio

from goat_mcp.subprocesses.process_guard import MARKER_VARIABLE, ProcessGuard
from goat_mcp.subprocesses.process_tree import ProcessTree, boot_ticks
from goat_mcp.subprocesses.stop_signals import unblocked_for_children

TERM_GRACE_S = 1.0
"""A cancelled run is over within two seconds, with some of them left for KILL."""
DRAIN_S = 2.0
"""What a program leaves running may go on printing that long."""
_COMPLAINT_BYTES = 8 * 1024
_STDIN, _STDOUT, _STDERR = 0, 1, 2


@dataclass(frozen=True, slots=True)
class ProgramEnd:
    """`exit_code` is negative where a signal ended it. `complaint` is the end of what it printed as errors."""

    exit_code: int
    complaint: str
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

    Nothing of it runs any more when this returns, is cancelled, or raises: `OSError` where it cannot be started.
    """
    guard.start()
    marker = guard.marker(secrets.token_hex(8))
    not_before = boot_ticks()
    with unblocked_for_children():
        transport, pipes = await asyncio.get_running_loop().subprocess_exec(
            lambda: _Pipes(on_output),
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**environment, MARKER_VARIABLE: marker},
            cwd=directory,
            start_new_session=sys.platform != "win32",
        )
    pid = transport.get_pid()
    guard.watch(pid, is_command=True)
    tree = ProcessTree(leader=pid, marker=f"{MARKER_VARIABLE}={marker}".encode(), not_before=not_before)
    try:
        _give(transport, data)
        with anyio.move_on_after(timeout_s):
            await pipes.exited.wait()
        timed_out = not pipes.exited.is_set()
        if not timed_out:
            # A child that it has left running may hold its pipes open for as long as it likes.
            with anyio.move_on_after(drain_s):
                await pipes.closed.wait()
    finally:
        with anyio.CancelScope(shield=True):
            await tree.end(TERM_GRACE_S)
            with anyio.move_on_after(TERM_GRACE_S):
                await pipes.exited.wait()
        guard.forget(pid)
        transport.close()
    code = transport.get_returncode()
    return ProgramEnd(-1 if code is None else code, pipes.complaint, timed_out=timed_out)


def _give(transport: asyncio.SubprocessTransport, data: bytes) -> None:
    """Write all of `data` and close. A program that does not read it is none of our business."""
    stdin = cast("asyncio.WriteTransport", transport.get_pipe_transport(_STDIN))
    stdin.write(data)
    stdin.close()


class _Pipes(asyncio.SubprocessProtocol):
    def __init__(self, on_output: Callable[[bytes], None]) -> None:
        self.exited = asyncio.Event()
        self.closed = asyncio.Event()
        """Standard output has ended."""
        self._on_output = on_output
        self._complaint = bytearray()

    @property
    def complaint(self) -> str:
        return self._complaint.decode("utf-8", "replace").strip()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == _STDOUT:
            self._on_output(data)
        else:
            self._complaint += data
            del self._complaint[:-_COMPLAINT_BYTES]

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == _STDOUT:
            self.closed.set()

    def process_exited(self) -> None:
        self.exited.set()
