"""A process that takes too much memory is ended, although its kernel sets it no limit."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.processes import ProcessGuard
from goat_mcp.processes.computing import worker_process
from goat_mcp.processes.computing.worker_process import Computation, ComputingLimiter
from goat_mcp.processes.memory_watch import watch_memory
from tests.processes.processes import without_linux

_MIB = 1024 * 1024
TAKES = "import sys, time; taken = b'x' * int(sys.argv[1]); print('has it', flush=True); time.sleep(600)"


def taking(mib: int) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-ISc", TAKES, str(mib * _MIB)], stdout=subprocess.PIPE, text=True)


def test_a_process_above_its_bound_is_killed_and_one_below_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    without_linux(monkeypatch)
    with taking(1) as small, taking(300) as large:
        assert small.stdout is not None and large.stdout is not None
        for process in (small, large):
            watch_memory(process.pid, 200 * _MIB)

        assert large.wait(60) == -signal.SIGKILL
        assert small.poll() is None
        assert small.stdout.readline() == "has it\n"
        small.kill()


@pytest.mark.anyio
async def test_a_computation_that_takes_too_much_memory_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    without_linux(monkeypatch)
    monkeypatch.setattr(worker_process, "MEMORY_BYTES", 100 * _MIB)
    computation = Computation(ProcessGuard(), ComputingLimiter(), "tests.processes.computing.greedy_worker")

    with pytest.raises(ToolError) as refused:
        await computation.answer({"mib": 300}, b"", ToolContext(call_id="c"), what="the query")

    assert refused.value.code is ErrorCode.TOO_LARGE


@pytest.mark.linux_only("its kernel sets the bound")
def test_nobody_looks_where_the_kernel_does() -> None:
    with taking(300) as process:
        assert process.stdout is not None and process.stdout.readline() == "has it\n"
        watch_memory(process.pid, 1)
        time.sleep(0.5)  # a watcher would have the time

        assert process.poll() is None
        process.kill()
