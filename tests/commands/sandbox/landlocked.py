"""Running a program under Landlock for real, and why that cannot be done here."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from goat_mcp.commands.sandbox.confinement import Bounds, Job
from goat_mcp.commands.sandbox.landlock import Landlock
from goat_mcp.processes import linux_landlock as kernel

ABI = kernel.Landlock().abi
"""Asked of the kernel itself: a launcher of ours that fails is a failed test, never a skipped one."""
needs_landlock = pytest.mark.skipif(ABI < 1, reason="this kernel has no Landlock, or it is switched off")
LIMIT_S = 60
PATH = "/usr/local/bin:/usr/bin:/bin"


def run(
    *arguments: str,
    bounds: Bounds,
    directory: Path = Path("/"),
    environment: dict[str, str] | None = None,
    pass_fds: tuple[int, ...] = (),
    way: Landlock | None = None,
) -> subprocess.CompletedProcess[str]:
    """What a program answers when it is confined to `bounds`."""
    given = {"PATH": PATH, "HOME": "/nonexistent"} if environment is None else environment
    job = Job(arguments=arguments, directory=directory, environment=given, bounds=bounds, pass_fds=pass_fds)
    launch = (way or Landlock()).launch(job)
    try:
        return subprocess.run(
            launch.arguments,
            env=launch.environment,
            cwd=launch.directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            pass_fds=launch.pass_fds,
            timeout=LIMIT_S,
        )
    finally:
        launch.finish()
