"""The resident process for a measurement: that it takes sessions, and which process serves a window."""

from __future__ import annotations

import time
from collections.abc import Sequence

from bench.process_cost import cpu_ms
from bench.processes import Started, forked_servers, resident_processes
from bench.wire import WireClient
from bench.workbench import CannotMeasure, Workbench

_WARM_TIMEOUT_S = 60.0


def warm_resident(bench: Workbench, command: Sequence[str], started: Started) -> None:
    """Start servers until one of them is forked by the resident process, which the first of them starts."""
    deadline = time.monotonic() + _WARM_TIMEOUT_S
    while time.monotonic() < deadline:
        with WireClient(command, bench.resident_env, stderr=bench.root / "resident.log") as client:
            client.open()
            client.list_tools()
            if forked_servers(started):
                return
        bench.say("the resident process is starting")
        time.sleep(0.2)
    raise CannotMeasure(f"the resident process took no session within {_WARM_TIMEOUT_S:.0f} s")


class NewServers:
    """What the resident process does for servers that start from now on."""

    def __init__(self, started: Started) -> None:
        self._started = started
        self._known = set(forked_servers(started))
        self._worked_ms = {pid: cpu_ms(pid) for pid in resident_processes(started)}

    def next(self) -> int | None:
        """The server that was forked since one last looked; None if the launcher serves by itself."""
        found = [pid for pid in forked_servers(self._started) if pid not in self._known]
        self._known.update(found)
        return found[-1] if found else None

    def resident_worked_ms(self) -> float:
        """CPU time of the resident process itself since then."""
        return sum(cpu_ms(pid) - before for pid, before in self._worked_ms.items())
