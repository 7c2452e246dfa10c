"""One run of a program: what it is given on its standard input, what it prints as it prints it, how it ended.

Commands of a shell, which may go on in the background, are in `running_command`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio

from goat_mcp.processes.guarded_child import GuardedPipes, start_guarded
from goat_mcp.processes.process_guard import ProcessGuard

TERM_GRACE_S = 1.0
"""A cancelled run is over within two seconds, with some of them left for KILL."""
DRAIN_S = 2.0
"""What a program leaves running may go on printing that long."""


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
    child = await start_guarded(
        lambda: _Output(on_output),
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
    return ProgramEnd(-1 if code is None else code, pipes.complaint, timed_out=timed_out)


class _Output(GuardedPipes):
    def __init__(self, on_output: Callable[[bytes], None]) -> None:
        super().__init__()
        self.closed = asyncio.Event()
        self._on_output = on_output

    def printed(self, data: bytes) -> None:
        self._on_output(data)

    def output_ended(self) -> None:
        self.closed.set()
