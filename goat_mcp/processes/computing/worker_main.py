"""The worker's side of a computation: a request in, an answer out, within limits that the process sets itself.

Nothing here or in the modules that use it is loaded by the server, but for `Refused`."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any


def limit_resources(*, cpu_s: int, memory_bytes: int) -> None:
    """From now on this process gets no more than that, and writes no file."""
    if sys.platform == "win32":
        return
    import resource

    for kind, most in (
        (resource.RLIMIT_CPU, cpu_s),
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
    ):
        # Not every system has every limit, and a lower one may be in force.
        with suppress(ValueError, OSError):
            resource.setrlimit(kind, (most, most))


LIMIT_S = 2.0
MAX_BYTES = 10 * 1024 * 1024
"""Of what goes in, and of what comes out."""
_CPU_S = 4
_MEMORY_BYTES = 768 * 1024 * 1024
_NO_MEMORY = 125


class Refused(Exception):
    """The work cannot be done as asked. The keywords are the answer's head."""

    def __init__(self, **head: Any) -> None:
        super().__init__(str(head))
        self.head = head


def serve(work: Callable[[Mapping[str, Any], bytes], bytes]) -> None:
    """Do the one piece of work on standard input, and exit."""
    limit_resources(cpu_s=_CPU_S, memory_bytes=_MEMORY_BYTES)
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
    if sys.platform != "win32":
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, LIMIT_S)


def _stop_timer() -> None:
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_PROF, 0)
