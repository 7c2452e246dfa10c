"""Runs `goat-mcp` so that modes of files and folders count, also where the tests are root's."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

_BEGIN = """
import ctypes, os, sys
for right in (1, 2):  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH: only root has them, and nobody else can give them up
    ctypes.CDLL(None).prctl(24, right, 0, 0, 0)
os.execv(sys.executable, [sys.executable, "-m", "goat_mcp", *sys.argv[1:]])
"""


def run_as_ordinary_user(
    *words: str, cwd: Path, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _BEGIN, *words],
        cwd=cwd,
        env={"PATH": "/usr/bin:/bin", **(variables or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
