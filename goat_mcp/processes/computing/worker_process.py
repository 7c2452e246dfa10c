"""Work in a process of its own that is killed when it overruns: from a request to its answer, or to the error."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from goat_mcp.core import platform, posix
from goat_mcp.core.concurrency_limiter import ConcurrencyLimiter
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.processes import ProcessGuard
from goat_mcp.processes.computing.worker_main import LIMIT_S, MEMORY_BYTES
from goat_mcp.processes.memory_watch import watch_memory
from goat_mcp.processes.windows_job import JobLimits

_PACKAGE_PARENT = str(Path(__file__).resolve().parents[3])
_START = "import sys; sys.path[:0] = sys.argv[2:]; import importlib; importlib.import_module(sys.argv[1]).main()"
_PASSED_VARIABLES = ("SYSTEMROOT",)


class WorkerProcess:
    """Runs `main()` of a module. `kill` may come from another thread at any time, also before it has started."""

    def __init__(self, guard: ProcessGuard, module: str, packages: Sequence[str] = ()) -> None:
        """`packages` are those of others that the module imports. Raises `ToolError` if one is not installed."""
        self._guard = guard
        # Without site it starts in half the time, and nothing of the environment reaches it.
        folders = (_PACKAGE_PARENT, *map(_folder_of, packages))
        self._command = (sys.executable, "-I", "-S", "-c", _START, module, *folders)
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_killed = False
        self.exit_code: int | None = None

    def run(self, parts: Sequence[bytes]) -> bytes:
        """What the process wrote. Blocking."""
        process = self._start()
        if process is None:
            return b""
        self._guard.watch(process.pid, limits=JobLimits(max_memory_bytes=MEMORY_BYTES))
        watch_memory(process.pid, MEMORY_BYTES)
        try:
            out, _ = process.communicate(b"".join(parts))
        finally:
            process.kill()
            process.wait()
            self._guard.forget(process.pid)
        self.exit_code = process.returncode
        return out

    def kill(self) -> None:
        with self._lock:
            self._is_killed = True
            if self._process is not None and self._process.poll() is None:
                self._process.kill()

    def _start(self) -> subprocess.Popen[bytes] | None:
        with self._lock:
            if self._is_killed:
                return None
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd="/" if platform.HAS_PROCESS_GROUPS else None,
                env={name: os.environ[name] for name in _PASSED_VARIABLES if name in os.environ},
                process_group=0 if platform.HAS_PROCESS_GROUPS else None,
            )
            return self._process


def _folder_of(package: str) -> str:
    found = find_spec(package)
    if found is None or found.origin is None:
        raise ToolError(ErrorCode.NOT_CONFIGURED, f"{package} is not installed", f"Ask the user to install {package}.")
    return str(Path(found.origin).parents[1])


IN_ALL = 4
"""Each may take a core and half a gigabyte."""
PER_PRINCIPAL = 3
"""The last permit is for the next principal."""
QUEUE_S = 10.0
"""How long a call waits for its turn before it is refused."""


class ComputingLimiter:
    """How many computations run at a time. Principals have their turns alike, and so have the sessions of one."""

    def __init__(self, in_all: int = IN_ALL, per_principal: int = PER_PRINCIPAL, *, queue_s: float = QUEUE_S) -> None:
        self._limiter = ConcurrencyLimiter(in_all, per_principal)
        self._queue_s = queue_s

    @asynccontextmanager
    async def permit(self, ctx: ToolContext, what: str) -> AsyncGenerator[None]:
        """Hold a permit. `what` names the work in errors. Raises `ToolError(BUSY)`."""
        owner = (ctx.principal, ctx.session_key)
        wait_s = min(self._queue_s, ctx.wait_left_s())
        if not await self._limiter.take(owner, wait_s):
            own = self._limiter.running(owner[:1])
            running = f"{own} of your computations run" if own else "computations of other clients run"
            raise ToolError(
                ErrorCode.BUSY,
                f"{what} had no turn within {wait_s:.3g} s: {running}, and others are waiting",
                "Nothing was run. Call again when one of the others has answered, and send fewer at a time.",
                facts={"retry_after_s": 2},
            )
        try:
            yield
        finally:
            self._limiter.leave(owner)


SPARE_S = 8.0
"""What a busy machine may take for it beside the time of its processor."""
_TIMED_OUT = (-posix.SIGPROF, -posix.SIGXCPU)


@dataclass(frozen=True)
class WorkerAnswer:
    """`head` is JSON, `body` what it is about."""

    head: Mapping[str, Any]
    body: bytes


class Computation:
    """One kind of work, that of `module`: its `main` reads a request and writes an answer (see `worker_main`)."""

    def __init__(
        self,
        guard: ProcessGuard,
        limiter: ComputingLimiter,
        module: str,
        packages: Sequence[str] = (),
    ) -> None:
        """`limiter` is shared with all other kinds."""
        self._guard = guard
        self._limiter = limiter
        self._module = module
        self._packages = packages
        # Of its own: work that takes long must not use up the threads everybody else works in.
        self._threads = anyio.CapacityLimiter(IN_ALL)

    async def answer(self, head: Mapping[str, Any], body: bytes, ctx: ToolContext, *, what: str) -> WorkerAnswer:
        """`what` words errors: `the query`. Raises `ToolError`: TIMEOUT after 2 s of a processor's time, TOO_LARGE
        where memory ran out, BUSY where others are first."""
        async with self._limiter.permit(ctx, what):
            worker = WorkerProcess(self._guard, self._module, self._packages)
            given: bytes | None = None
            try:
                # The work itself is timed by the process (`worker_main`); this is for one that cannot even do that.
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
        return WorkerAnswer(json.loads(first), rest)
