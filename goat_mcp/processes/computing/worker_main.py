"""The worker's side of a computation: a request in, an answer out, within limits that the process sets itself.

Nothing here or in the modules that use it is loaded by the server, but for `Refused`."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Mapping
from typing import Any

from goat_mcp.core import platform, posix


def limit_resources(*, cpu_s: int, memory_bytes: int) -> None:
    """From now on this process gets no more than that, and writes no file, if the system has such limits.

    Its parent sees to its memory if the system does not (`memory_watch`).
    """
    posix.limit_resource("CPU", cpu_s)
    posix.limit_resource("AS", memory_bytes)
    posix.limit_resource("CORE", 0)
    posix.limit_resource("FSIZE", 0)


LIMIT_S = 2.0
MAX_BYTES = 10 * 1024 * 1024
"""Of what goes in, and of what comes out."""
_CPU_S = 4
MEMORY_BYTES = 768 * 1024 * 1024
_NO_MEMORY = 125


class Refused(Exception):
    """The work cannot be done as asked. The keywords are the answer's head."""

    def __init__(self, **head: Any) -> None:
        super().__init__(str(head))
        self.head = head


def serve(work: Callable[[Mapping[str, Any], bytes], bytes]) -> None:
    """Do the one piece of work on standard input, and exit."""
    limit_resources(cpu_s=_CPU_S, memory_bytes=MEMORY_BYTES)
    with open(0, "rb", closefd=False) as source:
        head = json.loads(source.readline())
        body = source.read()
    _start_timer()
    try:
        answer: Mapping[str, Any] = {}
        out = work(head, body)
    except Refused as refused:
        answer, out = refused.head, b""
    except (MemoryError, RecursionError):
        os._exit(_NO_MEMORY)
    _stop_timer()
    with open(1, "wb", closefd=False) as target:
        target.write(json.dumps(answer).encode("ascii") + b"\n")
        target.write(out)
    os._exit(0)  # taking the interpreter down takes longer than most work


def _start_timer() -> None:
    """Time of the processor: what a busy machine does meanwhile is not the work's fault. The system ends the process
    wherever it is stuck, inside a pattern of `re` too."""
    if platform.HAS_CPU_TIMERS:
        signal.signal(posix.SIGPROF, signal.SIG_DFL)
        posix.set_cpu_timer(LIMIT_S)


def _stop_timer() -> None:
    if platform.HAS_CPU_TIMERS:
        posix.set_cpu_timer(0)
