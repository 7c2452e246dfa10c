"""Sessions' temporary directories: private, kept while the process lives, gone afterwards, also after a crash."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from goat_mcp.commands.sandbox.session_folders import SessionFolders, remove_left_over
from tests.commands.sandbox.boxes import names

MAKER = (
    "import sys, os, signal; from pathlib import Path\n"
    "from goat_mcp.commands.sandbox.session_folders import SessionFolders\n"
    "SessionFolders(lambda: Path(sys.argv[1])).of('me', 's').joinpath('left').touch()\n"
    "os.kill(os.getpid(), signal.SIGKILL)"
)


def test_each_session_has_its_own_and_finds_it_again(tmp_path: Path) -> None:
    folders = SessionFolders(lambda: tmp_path)

    first = folders.of("me", "a")

    assert folders.of("me", "a") == first
    assert len({first, folders.of("me", "b"), folders.of("you", "a"), folders.of("", "mea")}) == 4
    assert (first.stat().st_mode & 0o777, first.parent.stat().st_mode & 0o777) == (0o700, 0o700)


def test_they_go_with_all_that_is_in_them(tmp_path: Path) -> None:
    folders, kept = SessionFolders(lambda: tmp_path), tmp_path / "elsewhere"
    kept.mkdir()
    (kept / "file").touch()
    (folders.of("me", "a") / "link").symlink_to(kept)

    folders.close()

    assert names(tmp_path) == ["elsewhere"]
    assert names(kept) == ["file"]


def test_those_of_a_killed_process_go_and_those_in_use_stay(tmp_path: Path) -> None:
    folders = SessionFolders(lambda: tmp_path)
    used = folders.of("me", "a")
    subprocess.run([sys.executable, "-c", MAKER, str(tmp_path)], check=False, timeout=60)
    assert len(names(tmp_path)) == 2

    remove_left_over(tmp_path)

    assert names(tmp_path) == [used.parent.name]
