"""What a measurement reads about processes, and that it leaves none behind."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from bench.process_cost import memory_kb, pss_mb, resident_mb, unshared_mb
from bench.processes import started_processes

pytestmark = pytest.mark.linux_only("measured is what /proc of Linux shows")

ROLLUP = """\
55e0c6a00000-7ffd4f3fe000 ---p 00000000 00:00 0                          [rollup]
Rss:               12345 kB
Pss:                4000 kB
Pss_Dirty:          3000 kB
Shared_Clean:       8000 kB
Private_Clean:       100 kB
Private_Dirty:      2900 kB
"""
# Leaves its parent as the resident process does, says its number, and waits longer than any test.
LEAVES = """
import os, sys, time
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
print(os.getpid(), flush=True)
os.close(1)
time.sleep(600)
"""


def test_lines_of_a_memory_report_are_added_up() -> None:
    assert memory_kb(ROLLUP, {"Private_Clean", "Private_Dirty"}) == 3000
    assert memory_kb(ROLLUP, {"Pss"}) == 4000


def test_a_report_without_a_line_is_no_zero() -> None:
    with pytest.raises(LookupError, match="no Private_Hugetlb among"):
        memory_kb(ROLLUP, {"Private_Hugetlb"})


def test_a_processs_own_memory_is_a_part_of_what_it_holds() -> None:
    pid = os.getpid()

    assert 0 < unshared_mb(pid) <= pss_mb([pid]) <= resident_mb(pid)


def test_a_process_that_left_its_parent_is_found_and_ended() -> None:
    with started_processes() as started:
        pid = int(subprocess.run([sys.executable, "-c", LEAVES], stdout=subprocess.PIPE, check=True).stdout)
        found = started()

    assert found == [pid]
    assert not _runs(pid)


def test_a_process_that_was_there_before_goes_on() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as earlier:
        with started_processes() as started:
            found = started()

        assert found == []
        assert earlier.poll() is None


def test_a_process_that_ignores_the_request_to_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.processes._TERM_TIMEOUT_S", 0.2)
    stubborn = "import signal, time; signal.signal(15, signal.SIG_IGN); print(flush=True); time.sleep(600)"

    with started_processes():
        process = subprocess.Popen([sys.executable, "-c", stubborn], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()

    assert not _runs(process.pid)
    process.communicate()


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
