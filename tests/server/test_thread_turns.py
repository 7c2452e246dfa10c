"""A worker thread that computes does not keep the event loop from its turn for long (ISO-1)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SAY_AT_THE_END = """
import atexit, sys
atexit.register(lambda: print(f"switches after {sys.getswitchinterval()} s", file=sys.stderr))
from goat_mcp.cli.main import main
main()
"""


@pytest.mark.real_processes
def test_a_server_takes_the_interpreter_back_from_its_threads_after_half_a_millisecond(tmp_path: Path) -> None:
    environment = {**os.environ, "HOME": str(tmp_path), "GOAT_MCP_STATE_DIR": str(tmp_path / "state")}

    ended = subprocess.run(
        [sys.executable, "-c", SAY_AT_THE_END, "serve", "--workspace", str(tmp_path)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        env=environment,
        check=True,
    )

    assert "switches after 0.0005 s" in ended.stderr
