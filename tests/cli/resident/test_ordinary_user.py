"""An ordinary user's resident process: what root may read in `/proc`, the kernel refuses to others. Root's runs of
these tests become such a user; who is one runs them as they are."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.repetitions import is_full

pytestmark = [pytest.mark.e2e, pytest.mark.real_processes]

_NOBODY = 65534
_HERE = Path(__file__).parent
_QUICK = (
    "test_faults.py::test_the_first_start_serves_by_itself_and_the_next_is_a_fork",
    "test_like_the_hosts_process.py::test_the_session_has_what_the_hosts_process_has[OOM score]",
)
# Root's own Python may be in a folder that nobody else may enter: there it is seen in a copy of that folder's tree.
_BEGIN = """
set -e
python=$1 hidden=$2 aside=$3
shift 3
if [ -n "$hidden" ]; then
  mount --bind "$python" "$aside"
  mount -t tmpfs -o mode=755 tmpfs "$hidden"
  mkdir -p "$python"
  mount --bind "$aside" "$python"
fi
exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
"""


@pytest.fixture
def folder() -> Generator[Path]:
    """One that the other user can reach: pytest's own are root's alone."""
    one = Path(tempfile.mkdtemp(prefix="goat-nobody-"))
    (one / "python").mkdir()
    os.chown(one, _NOBODY, _NOBODY)
    yield one
    shutil.rmtree(one)


def _hidden(path: Path) -> str:
    """The first folder of a path that only its owner may enter."""
    folders = (one for one in reversed(path.parents) if not one.stat().st_mode & 0o001)
    return str(next(folders, ""))


@pytest.mark.root_only("becomes an ordinary user")
def test_an_ordinary_user_is_served_by_forks(folder: Path) -> None:
    if _hidden(_HERE) or _hidden(Path(sys.prefix, "lib")):
        pytest.skip("nobody else may read this checkout")
    python = Path(sys.base_prefix)
    begin = ["unshare", "--mount", "sh", "-c", _BEGIN, "-", str(python), _hidden(python), str(folder / "python")]
    if subprocess.run([*begin, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    tests = [str(_HERE)] if is_full() else [str(_HERE / one) for one in _QUICK]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={folder}/tests", *tests]

    done = subprocess.run(
        [*begin, *command],
        cwd=_HERE.parents[2],
        env={**os.environ, "HOME": str(folder)},
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stdout[-5000:]
    assert " skipped" not in done.stdout or is_full()
