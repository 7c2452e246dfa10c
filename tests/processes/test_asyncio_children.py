from __future__ import annotations

import json
import subprocess
import sys

import pytest

COUNTED = """
import asyncio, json, sys, threading
from goat_mcp.processes.asyncio_children import watch_exits_without_threads

async def main():
    command = [sys.executable, "-ISc", "import sys; sys.stdin.read(); sys.exit(7)"]
    children = [await asyncio.create_subprocess_exec(*command, stdin=-1) for _ in "abc"]
    threads = threading.active_count()
    for child in children:
        child.stdin.close()
    print(json.dumps([threads, [await child.wait() for child in children]]))

if sys.argv[1] == "forbidden":
    import os
    from goat_mcp.core import posix
    def forbidden(pid, flags=0):
        raise PermissionError(1, "no")
    os.pidfd_open = posix.pidfd_open = forbidden
watch_exits_without_threads()
asyncio.run(main())
"""


def counted(kernel: str) -> tuple[int, list[int]]:
    command = [sys.executable, "-c", COUNTED, kernel]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    threads, statuses = json.loads(done.stdout)
    return threads, statuses


@pytest.mark.linux_only("only Linux tells of an exit by a descriptor")
def test_children_take_no_thread_each_and_their_exits_are_seen() -> None:
    # ISO-1
    assert counted("allowed") == (1, [7, 7, 7])


def test_where_the_kernel_forbids_it_exits_are_seen_all_the_same() -> None:
    assert counted("forbidden")[1] == [7, 7, 7]
