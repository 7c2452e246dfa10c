"""Job objects: how Windows keeps the processes of one command together, and ends them when their last handle closes.

Each of our children is suspended until it is in a job of its own. Nobody but this process has the job's handle, so the
system ends all that is in it when this process is gone, however it died.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

CREATE_SUSPENDED = 0x0000_0004
CREATE_NEW_PROCESS_GROUP = 0x0000_0200
CREATE_NO_WINDOW = 0x0800_0000
CHILD_FLAGS = CREATE_NEW_PROCESS_GROUP | CREATE_NO_WINDOW
"""Ctrl-C at our console is for us alone, and no window opens for a program that writes to one."""


_CONSOLE_HOST = "conhost.exe"
"""Windows' own: it draws the console of others, and ends with them."""


@dataclass(frozen=True)
class JobLimits:
    """What all processes of a job get; 0 means no limit of ours."""

    max_memory_bytes: int = 0
    max_processes: int = 0


class JobMember(NamedTuple):
    """A process that runs in a job. `name` is its program's, e.g. `node.exe`; empty if it is ending."""

    pid: int
    name: str


class JobCalls(Protocol):
    """What the system does for us. A handle is whatever it says. All raise `OSError`."""

    def create(self, limits: JobLimits) -> Any:
        """A job whose processes end with its last handle."""
        ...

    def assign(self, job: Any, pid: int) -> None: ...
    def resume(self, pid: int) -> None: ...
    def members(self, job: Any) -> list[JobMember]: ...
    def terminate(self, job: Any) -> None: ...
    def close(self, job: Any) -> None: ...


@dataclass
class Jobs:
    """The jobs of this process's children, each under the number of its first process."""

    calls: JobCalls
    _jobs: dict[int, Any] = field(default_factory=dict[int, Any])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, pid: int, limits: JobLimits | None = None) -> None:
        """Put a suspended process into a job, and let it run. Raises `OSError`; the process must then be killed."""
        job = self.calls.create(limits or JobLimits())
        try:
            self.calls.assign(job, pid)
            self.calls.resume(pid)
        except OSError:
            self.calls.close(job)  # ends the process if it is in it
            raise
        with self._lock:
            self._jobs[pid] = job

    def members(self, pid: int) -> list[JobMember]:
        """Those that still run."""
        with self._lock:
            job = self._jobs.get(pid)
            members = [] if job is None else self.calls.members(job)
        return [one for one in members if one.name.lower() != _CONSOLE_HOST]

    def terminate(self, pid: int) -> None:
        """End all that is in the job, at once. Windows has no TERM that a tree of processes would hear."""
        with self._lock:
            if (job := self._jobs.get(pid)) is not None:
                self.calls.terminate(job)

    def forget(self, pid: int) -> None:
        """End what is left in the job, and let it go."""
        with self._lock:
            if (job := self._jobs.pop(pid, None)) is not None:
                self.calls.close(job)

    def close(self) -> None:
        """End everything."""
        for pid in tuple(self._jobs):
            self.forget(pid)
