"""Job objects: which calls are made in which order. The system's side is a double; tests/windows has the real one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from goat_mcp.core import platform
from goat_mcp.processes.process_guard import ProcessGuard, guarded_start
from goat_mcp.processes.process_tree import ProcessTree
from goat_mcp.processes.windows_job import CREATE_SUSPENDED, JobLimits, JobMember, Jobs


@dataclass
class FakeSystem:
    """Jobs that end at the second look after `terminate`."""

    fails_at: str = ""
    said: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    inside: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    _ending: dict[int, int] = field(default_factory=dict[int, int])

    def _say(self, *words: Any) -> None:
        self.said.append(words)
        if words[0] == self.fails_at:
            raise OSError("refused")

    def create(self, limits: JobLimits) -> int:
        self._say("create", limits)
        return len(self.said) * 100

    def assign(self, job: int, pid: int) -> None:
        self._say("assign", job, pid)
        self.inside[job] = [pid]

    def resume(self, pid: int) -> None:
        self._say("resume", pid)

    def members(self, job: int) -> list[JobMember]:
        if job in self._ending and (left := self._ending[job] - 1) >= 0:
            self._ending[job] = left
            if left == 0:
                self.inside[job] = []
        return [JobMember(pid, "bash.exe") for pid in self.inside[job]] + [JobMember(99, "Conhost.exe")]

    def terminate(self, job: int) -> None:
        self._say("terminate", job)
        self._ending.setdefault(job, 2)

    def close(self, job: int) -> None:
        self._say("close", job)


def test_a_process_runs_only_once_it_is_in_its_job() -> None:
    system = FakeSystem()

    Jobs(system).take(7, JobLimits(max_processes=3))

    assert system.said == [("create", JobLimits(max_processes=3)), ("assign", 100, 7), ("resume", 7)]


@pytest.mark.parametrize("call", ["assign", "resume"])
def test_a_job_that_a_process_cannot_run_in_is_closed(call: str) -> None:
    system = FakeSystem(fails_at=call)
    jobs = Jobs(system)

    with pytest.raises(OSError, match="refused"):
        jobs.take(7)

    assert system.said[-1] == ("close", 100)
    assert jobs.members(7) == []


def test_each_job_is_closed_once() -> None:
    system = FakeSystem()
    jobs = Jobs(system)
    jobs.take(7)
    jobs.take(8)

    jobs.forget(7)
    jobs.forget(7)
    jobs.close()

    assert [said for said in system.said if said[0] == "close"] == [("close", 100), ("close", 400)]


@pytest.mark.anyio
async def test_a_tree_in_a_job_is_ended_by_the_job_and_waited_for() -> None:
    system = FakeSystem()
    jobs = Jobs(system)
    jobs.take(7)
    tree = ProcessTree(leader=7, marker=b"", jobs=jobs)
    assert [member.pid for member in tree.members()] == [7]

    assert await tree.end(grace_s=60)

    assert ("terminate", 100) in system.said
    assert tree.members() == []


def test_the_guard_puts_what_it_watches_into_a_job_and_ends_it_when_it_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    system = FakeSystem()
    monkeypatch.setattr(platform, "HAS_JOB_OBJECTS", True)
    monkeypatch.setattr(platform, "HAS_PROCESS_GROUPS", False)
    monkeypatch.setattr("goat_mcp.processes.process_guard.system_jobs", lambda: Jobs(system))
    guard = ProcessGuard()

    guard.watch(7)
    guard.watch(8)
    guard.forget(7)
    guard.close()

    assert [said[0] for said in system.said] == ["create", "assign", "resume"] * 2 + ["close", "close"]
    assert guarded_start()["creationflags"] & CREATE_SUSPENDED
    assert not guarded_start(is_watched=False)["creationflags"] & CREATE_SUSPENDED


def test_a_process_that_cannot_be_put_into_a_job_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[int] = []

    def kill(pid: int, number: int) -> None:
        killed.append(pid)

    monkeypatch.setattr(platform, "HAS_JOB_OBJECTS", True)
    monkeypatch.setattr(platform, "HAS_PROCESS_GROUPS", False)
    monkeypatch.setattr("goat_mcp.processes.process_guard.system_jobs", lambda: Jobs(FakeSystem(fails_at="assign")))
    monkeypatch.setattr("goat_mcp.processes.process_guard.os.kill", kill)

    ProcessGuard().watch(7)

    assert killed == [7]
