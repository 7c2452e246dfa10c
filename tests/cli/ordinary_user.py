"""Runs `goat-mcp` so that modes of files and folders count, also where the tests are root's."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.quick_start import script_command

_SCRIPT = Path(__file__).with_name("without_rights_of_root.py")


def run_as_ordinary_user(
    *words: str, cwd: Path, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        script_command(_SCRIPT, *words),
        cwd=cwd,
        env={"PATH": "/usr/bin:/bin", **(variables or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
