from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from goat_mcp.processes.linux_confinement import why_confined

pytestmark = pytest.mark.linux_only("reads /proc")


def test_a_process_like_this_one_is_not_confined() -> None:
    assert why_confined(f"/proc/{os.getpid()}") == ""


def test_a_process_with_no_new_privs_may_be_confined() -> None:
    script = "import ctypes, sys; ctypes.CDLL(None).prctl(38, 1, 0, 0, 0); print(flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        why = why_confined(f"/proc/{process.pid}")
        process.communicate()

    assert why.startswith("it has no_new_privs")


@pytest.mark.parametrize(
    ("line", "other", "why"),
    [
        ("NSpid:\t7", "NSpid:\t7\t1", "it has a pid namespace of its own"),
        ("CapEff:\t1", "CapEff:\t0", "its CapEff is another"),
        ("Seccomp:\t0", "Seccomp:\t2", "its Seccomp is another"),
        ("Uid:\t0", "Uid:\t65534", "its Uid is another"),
    ],
    ids=["pid namespace", "capabilities", "seccomp", "user"],
)
def test_what_differs_is_named(tmp_path: Path, line: str, other: str, why: str) -> None:
    for name, shown in (("ours", line), ("theirs", other)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "status").write_text(f"NoNewPrivs:\t0\nNSpid:\t7\n{shown}\n")

    assert why_confined(str(tmp_path / "theirs"), str(tmp_path / "ours")) == why


def test_a_process_that_is_gone_is_not_taken_for_one_like_this(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="status"):
        why_confined(str(tmp_path))
