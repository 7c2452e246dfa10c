"""Folders for temporary files: private, kept while their process lives, and gone afterwards, also after a crash."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from goat_mcp.commands.sandbox.temporary_folders import (
    PrivateFolder,
    SessionFolders,
    remove_stale_folders,
    remove_stale_sessions,
)
from tests.commands.sandbox.boxes import names

LIMIT_S = 60
LONG_AGO = (0, 0)
MAKER = (
    "import sys, os, signal; from pathlib import Path\n"
    "from goat_mcp.commands.sandbox.temporary_folders import SessionFolders\n"
    "SessionFolders(lambda: Path(sys.argv[1])).of('me', 's').joinpath('left').touch()\n"
    "os.kill(os.getpid(), signal.SIGKILL)"
)


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def left_by_a_crash(temporary: Path) -> Path:
    program = (
        "import os; from goat_mcp.commands.sandbox.temporary_folders import PrivateFolder; "
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


def test_each_session_has_its_own_folder_and_finds_it_again(tmp_path: Path) -> None:
    folders = SessionFolders(lambda: tmp_path)

    first = folders.of("me", "a")

    assert folders.of("me", "a") == first
    assert len({first, folders.of("me", "b"), folders.of("you", "a"), folders.of("", "mea")}) == 4
    assert (first.stat().st_mode & 0o777, first.parent.stat().st_mode & 0o777) == (0o700, 0o700)


def test_session_folders_go_with_all_that_is_in_them(tmp_path: Path) -> None:
    folders, kept = SessionFolders(lambda: tmp_path), tmp_path / "elsewhere"
    kept.mkdir()
    (kept / "file").touch()
    (folders.of("me", "a") / "link").symlink_to(kept)

    folders.close()

    assert names(tmp_path) == ["elsewhere"]
    assert names(kept) == ["file"]


def test_session_folders_of_a_killed_process_go_and_those_in_use_stay(tmp_path: Path) -> None:
    folders = SessionFolders(lambda: tmp_path)
    used = folders.of("me", "a")
    subprocess.run([sys.executable, "-c", MAKER, str(tmp_path)], check=False, timeout=60)
    assert len(names(tmp_path)) == 2

    remove_stale_sessions(tmp_path)

    assert names(tmp_path) == [used.parent.name]
