"""Which files `make test` checks for the systems that it does not run on."""

from __future__ import annotations

import pytest

from scripts.system_files import ROOT, files, may_differ


@pytest.mark.parametrize(
    "source",
    [
        'if sys.platform == "win32": ...',
        "from goat_mcp.core import platform, posix",
        "from goat_mcp.core import posix",
        "import fcntl",
        "    from goat_mcp.processes.windows_job import Job",
        "os.fork()",
        "os.O_NOFOLLOW",
        "from os import fork",
        "path.owner()",
    ],
)
def test_what_not_every_system_has_is_checked_for_each(source: str) -> None:
    assert may_differ(f'"""Text."""\n\n{source}\n')


@pytest.mark.parametrize("source", ["import json", "os.path.join(a, b)", "os.environ", "one_platform = 1"])
def test_what_every_system_has_is_not(source: str) -> None:
    assert not may_differ(f'"""Text."""\n\n{source}\n')


def test_the_files_of_one_system_are_among_them() -> None:
    names = {file.relative_to(ROOT).as_posix() for file in files()}

    of_one = {file.relative_to(ROOT).as_posix() for file in (ROOT / "goat_mcp").rglob("windows_*.py")}
    assert of_one and of_one <= names
    assert {"goat_mcp/core/platform.py", "goat_mcp/core/posix.py", "goat_mcp/state/file_lock.py"} <= names
