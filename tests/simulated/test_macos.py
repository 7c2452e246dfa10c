"""The simulated Mac is one for goat-mcp and its children. What cannot run there is listed.

One file of tests for each area runs in it. `make macos-simulated` runs all of them.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulated.cannot_run import CANNOT_RUN
from tests.simulated.macos import why_impossible

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.linux_only("a Mac is simulated on Linux"),
    pytest.mark.skipif(bool(why_impossible()), reason=f"no simulated Mac: {why_impossible()}"),
]
ONE_FILE_PER_AREA = (
    "tests/tools/test_task_stop.py",
    "tests/tools/test_write.py",
    "tests/files/workspace/test_confinement.py",
    "tests/processes/test_program.py",
    "tests/commands/tasks/test_manager.py",
    "tests/upstreams/test_downloads.py",
    "tests/state/test_database.py",
    "tests/calls/test_pipeline.py",
    "tests/cli/test_approvals.py",
)
LOOK = """
import ctypes, errno, fcntl, json, os, pathlib, shutil, signal, subprocess, sys, tempfile
import platformdirs, psutil
from selectors import DefaultSelector

def refused(act):
    try:
        act()
    except OSError as problem:
        return errno.errorcode[problem.errno]

libc = ctypes.CDLL(None, use_errno=True)
def kernel(*numbers):
    return [libc.syscall(number, 0, 0, 0, 0) == -1 and errno.errorcode[ctypes.get_errno()] for number in numbers]

with tempfile.NamedTemporaryFile(dir=sys.argv[1]) as file:
    file_path = os.fsdecode(fcntl.fcntl(file, 50, bytes(1024)).rstrip(b"\\0"))
    is_known = file_path == file.name
root = os.open("/", os.O_RDONLY)
print(json.dumps({
    "names": [sys.platform, os.uname().sysname, platformdirs.user_data_dir("x").endswith("/Application Support/x")],
    "gone": [hasattr(os, "O_PATH"), hasattr(os, "pidfd_open"), hasattr(signal, "sigtimedwait")],
    "selector": DefaultSelector.__name__,
    "kernel": kernel(437, 444, 434),
    "proc": [refused(lambda: open("/proc/self/status")), refused(lambda: os.stat("/proc")),
        refused(lambda: pathlib.Path("/proc/self/fd").readlink()), refused(lambda: os.open("proc", 0, dir_fd=root)),
        os.path.exists("/proc"), shutil.which("bwrap")],
    "path": is_known,
    "psutil": psutil.Process().pid == os.getpid(),
    "child": json.loads(subprocess.check_output(sys.argv[2:])) if sys.argv[2:] else None,
}))
"""


def on_a_mac(*words: str, timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.simulated.macos", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout_s)


def test_it_is_a_mac_for_us_and_for_our_children(tmp_path: Path) -> None:
    look = tmp_path / "look.py"
    look.write_text(LOOK)
    start = f"import subprocess, sys; subprocess.run([sys.executable, '-I', {str(look)!r}, {str(tmp_path)!r}])"
    mac = {
        "names": ["darwin", "Darwin", True],
        "gone": [False, False, False],
        "selector": "PollSelector",
        "kernel": ["ENOSYS"] * 3,
        "proc": ["ENOENT"] * 4 + [False, None],
        "path": True,
        "psutil": True,
        "child": None,
    }

    itself = on_a_mac(str(look), str(tmp_path))
    child = on_a_mac("-c", start)

    assert itself.returncode == 0, itself.stderr
    assert [json.loads(itself.stdout), json.loads(child.stdout)] == [mac, mac]


def test_its_exit_code_is_that_of_what_it_runs() -> None:
    assert on_a_mac("-c", "raise SystemExit(7)").returncode == 7


def test_a_skip_that_no_list_names_fails_the_run_and_a_listed_one_does_not(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -q -p no:cacheprovider\n")
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "def test_quiet(): pytest.skip('for no reason')\n"
        "def test_listed(): pytest.skip('Linux only: it is so')\n"
    )
    words = ("-m", "pytest", "-p", "tests.simulated.mac_tests", "--rootdir", str(tmp_path), "-c")

    quiet = on_a_mac(*words, str(tmp_path / "pytest.ini"), str(tmp_path / "test_it.py"))
    listed = on_a_mac(*words, str(tmp_path / "pytest.ini"), f"{tmp_path / 'test_it.py'}::test_listed")

    assert quiet.returncode == pytest.ExitCode.TESTS_FAILED
    assert "skipped, and no list says so: test_it.py::test_quiet: for no reason" in quiet.stdout
    assert listed.returncode == pytest.ExitCode.OK


@pytest.mark.parametrize("listed", CANNOT_RUN)
def test_what_is_listed_exists_and_has_a_reason(listed: str) -> None:
    file, _, rest = listed.partition("::")
    *classes, name = rest.partition("[")[0].split("::")
    assert CANNOT_RUN[listed] and (ROOT / file).is_file()
    names = {node.name for node in ast.walk(ast.parse((ROOT / file).read_text())) if isinstance(node, _NAMED)}

    assert {*classes, name} - {""} <= names


_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@pytest.mark.xdist_group("simulated_macos")
def test_a_file_of_each_area_passes_there() -> None:
    done = on_a_mac("-m", "pytest", "-n", "0", "-p", "tests.simulated.mac_tests", *ONE_FILE_PER_AREA, timeout_s=300)

    assert done.returncode == 0, done.stdout[-8_000:] + done.stderr[-2_000:]
