"""From a request to the answer of a worker's process, or to the error that says what became of it."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.to_thread

from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.processes import ProcessGuard
from goat_mcp.processes.computing.exchange import LIMIT_S
from goat_mcp.processes.computing.fair_queue import IN_ALL, FairQueue
from goat_mcp.processes.computing.worker_process import WorkerProcess

SPARE_S = 8.0
"""What a busy machine may take for it beside the time of its processor."""
_TIMED_OUT = tuple(-getattr(signal, name) for name in ("SIGPROF", "SIGXCPU") if hasattr(signal, name))


@dataclass(frozen=True)
class Answer:
    """`head` is JSON, `body` what it is about."""

    head: Mapping[str, Any]
    body: bytes


class Computation:
    """One kind of work, that of `module`: its `main` reads a request and writes an answer (see `exchange`)."""

    def __init__(self, guard: ProcessGuard, places: FairQueue, module: str, packages: Sequence[str] = ()) -> None:
        """`places` are shared with all other kinds."""
        self._guard = guard
        self._places = places
        self._module = module
        self._packages = packages
        # Of its own: work that takes long must not use up the threads everybody else works in.
        self._threads = anyio.CapacityLimiter(IN_ALL)

    async def answer(self, head: Mapping[str, Any], body: bytes, ctx: ToolContext, *, what: str) -> Answer:
        """`what` words errors: `the query`. Raises `ToolError`: TIMEOUT after 2 s of a processor's time, TOO_LARGE
        where memory ran out, BUSY where others are first."""
        async with self._places.of(ctx, what):
            worker = WorkerProcess(self._guard, self._module, self._packages)
            given: bytes | None = None
            try:
                # The work itself is timed by the process (`exchange`); this is for one that cannot even do that.
                with anyio.move_on_after(LIMIT_S + SPARE_S):
                    given = await anyio.to_thread.run_sync(
                        worker.run,
                        (json.dumps(head).encode("ascii"), b"\n", body),
                        abandon_on_cancel=True,
                        limiter=self._threads,
                    )
            finally:
                worker.kill()
        if given is None or worker.exit_code in _TIMED_OUT:
            raise ToolError(
                ErrorCode.TIMEOUT,
                f"{what} was stopped: it took longer than {LIMIT_S:g} s of a processor's time",
                "Make it simpler, or work on less at a time.",
            )
        first, _, rest = given.partition(b"\n")
        if worker.exit_code != 0 or not first:
            raise ToolError(
                ErrorCode.TOO_LARGE,
                f"{what} took more memory than there is for it, or broke what runs it (exit code {worker.exit_code})",
                "Make it simpler, or work on less at a time.",
            )
        return Answer(json.loads(first), rest)
