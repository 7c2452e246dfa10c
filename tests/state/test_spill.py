"""Spill files: private, bounded, and gone after a while."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from goat_mcp.state import spill
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.spill import SpillFiles


@pytest.mark.posix_only("modes are POSIX's")
def test_a_spill_file_is_private(tmp_path: Path) -> None:
    path = SpillFiles(StateDirectory(tmp_path), "a").write("bash", "text")

    assert path.read_text() == "text"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_files_over_seven_days_old_go_in_every_scope(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path)
    old, new = SpillFiles(state, "a").write("bash", "old"), SpillFiles(state, "b").write("bash", "new")
    eight_days_ago_s = time.time() - 8 * 24 * 3600
    os.utime(old, (eight_days_ago_s, eight_days_ago_s))

    assert SpillFiles(state, "b").prune() == 1
    assert (old.exists(), new.exists()) == (False, True)


def test_the_oldest_go_where_all_together_are_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill, "MAX_TOTAL_BYTES", 10)
    files = SpillFiles(StateDirectory(tmp_path), "a")
    paths = [files.write("bash", "12345") for _ in range(3)]
    for age_s, path in enumerate(reversed(paths)):
        written_s = time.time() - 100 - age_s
        os.utime(path, (written_s, written_s))

    assert files.prune() == 1
    assert [path.exists() for path in paths] == [False, True, True]
