"""Every module of goat-mcp can be imported with what Windows' Python has."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.simulated.windows import ROOT, names

pytestmark = pytest.mark.linux_only("Windows is simulated on Linux")
SEEN = """
import sys
from tests.simulated.windows import enter
enter()
def refused(text):
    try:
        exec(text)
    except (ImportError, AttributeError) as problem:
        return type(problem).__name__
import os
print(sys.platform, os.name, [refused(text) for text in (
    "import fcntl", "from resource import RLIMIT_AS", "import os; os.killpg", "import signal; signal.SIGKILL",
    "import os; os.O_NOFOLLOW", "from os import geteuid", "import socket; socket.AF_UNIX")])
import win32job, pywintypes, shutil, subprocess
print(win32job.CreateJobObject is not None, shutil.which("sh") is not None)
"""


LINUX_ONLY = {f"goat_mcp.cli.resident.linux_{name}" for name in ("broker", "fork_server", "session_start")}
"""Nothing of ours imports them: the resident process is started as a program."""


def test_every_module_can_be_imported_on_windows() -> None:
    command = [sys.executable, "-m", "tests.simulated.windows"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    problems: dict[str, str] = json.loads(done.stdout)

    assert list(problems) == list(names())
    assert {"goat_mcp.state.file_lock", "manifests/ssh_bash/ssh_bash.py"} <= problems.keys()
    failed = {module for module, problem in problems.items() if problem}
    assert {module: problems[module] for module in failed - LINUX_ONLY} == {}
    assert failed == LINUX_ONLY


def test_what_only_posix_has_is_missing_for_our_code_alone() -> None:
    done = subprocess.run([sys.executable, "-c", SEEN], cwd=ROOT, capture_output=True, text=True, timeout=60)

    missing = ["ModuleNotFoundError"] * 2 + ["AttributeError"] * 3 + ["ImportError", "AttributeError"]
    assert done.stdout.splitlines() == [f"win32 nt {missing}", "True True"], done.stderr
