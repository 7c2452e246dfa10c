"""Our own `kill -9` leaves no upstream behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.repetitions import times
from tests.upstreams.fleet import SERVERS
from tests.upstreams.test_stdio_upstreams import is_alive, lines, pid_of

pytestmark = [pytest.mark.e2e, pytest.mark.chaos]

OURS = """
import sys
from pathlib import Path
import anyio
from goat_mcp.catalog.registry import Registry
from goat_mcp.state.directory import StateDirectory
from goat_mcp.processes.process_guard import ProcessGuard
from goat_mcp.state.telemetry import Telemetry
from goat_mcp.upstreams.config.entry import StdioLaunch, UpstreamConfig
from goat_mcp.upstreams.upstreams import Upstreams

folder, *args = sys.argv[1:]
config = UpstreamConfig(name="s", server="s", target=StdioLaunch(sys.executable, tuple(args)), start="eager")
anyio.run(Upstreams([config], registry=Registry(), state=StateDirectory(Path(folder)), telemetry=Telemetry("error"),
                    guard=ProcessGuard()).run)
"""


GONE_WITHIN_S = times(60, in_full_run=5)


# LIF-8
@pytest.mark.posix_only("process groups are POSIX")
@pytest.mark.parametrize("mode", ["plain", "hang", "stubborn"])
def test_an_upstream_does_not_outlive_us_being_killed(tmp_path: Path, mode: str) -> None:
    log = tmp_path / "log"
    ours = subprocess.Popen([sys.executable, "-c", OURS, str(tmp_path), str(SERVERS / "raw.py"), mode, str(log)])
    try:
        give_up_s = time.monotonic() + 60
        # Started, and in the modes that answer also through the handshake, so that it is no accident of starting.
        while not any(line == "list" or mode == "hang" for line in lines(log)):
            assert time.monotonic() < give_up_s
            time.sleep(0.02)
        killed_s = time.monotonic()
        os.kill(ours.pid, signal.SIGKILL)
        while is_alive(pid_of(log)) and time.monotonic() < killed_s + GONE_WITHIN_S:
            time.sleep(0.02)
    finally:
        ours.kill()
        ours.wait()

    assert not is_alive(pid_of(log))
