"""Folders for temporary files: who removes them, and when."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from goat_mcp.commands.sandbox.private_folder import PrivateFolder, remove_stale_folders

LIMIT_S = 60
LONG_AGO = (0, 0)


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def left_by_a_crash(temporary: Path) -> Path:
    program = (
        "import os; from goat_mcp.commands.sandbox.private_folder import PrivateFolder; "
        "f = PrivateFolder(); print(f.path); "
    )
    crash = (
        "(f.path / 'file').touch(); os.utime(f.path, (0, 0)); import sys; sys.stdout.flush(); os.kill(os.getpid(), 9)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program + crash],
        env={"TMPDIR": str(temporary), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    return Path(ran.stdout.strip())


def test_it_is_private_and_gone_with_its_content_once_removed(temporary: Path) -> None:
    folder = PrivateFolder()
    (folder.path / "file").write_text("x")
    mode = folder.path.stat().st_mode & 0o777

    folder.remove()

    assert (mode, list(temporary.iterdir())) == (0o700, [])


def test_what_a_crash_has_left_goes_and_what_is_in_use_or_new_stays(temporary: Path) -> None:
    left = left_by_a_crash(temporary)
    used = PrivateFolder()
    os.utime(used.path, LONG_AGO)
    new = temporary / "goat-mcp-sandbox-new"
    new.mkdir()
    (temporary / "other").mkdir()
    assert (left / "file").exists()

    remove_stale_folders()

    assert {path.name for path in temporary.iterdir()} == {used.path.name, new.name, "other"}
    used.remove()


def test_a_link_of_that_name_is_not_followed(temporary: Path) -> None:
    outside = temporary / "outside"
    outside.mkdir()
    (outside / "file").touch()
    os.utime(outside, LONG_AGO)
    (temporary / "goat-mcp-sandbox-link").symlink_to(outside)

    remove_stale_folders()

    assert (outside / "file").exists()
