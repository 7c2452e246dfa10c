"""A workspace, a state directory and a configuration of their own, and commands that run there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_undo import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    folder = tmp_path / "ws"
    folder.mkdir()
    return Shell(folder, tmp_path / "state")
