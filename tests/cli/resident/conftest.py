"""A home of its own for each test, and the end of every resident process in it."""

from __future__ import annotations

import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.cli.resident.own_home import Home, home

if sys.platform != "linux":
    collect_ignore_glob = ["test_*.py"]  # only Linux has a resident process


@pytest.fixture
def one_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Home]:
    monkeypatch.delenv("GOAT_MCP_RESIDENT", raising=False)
    with home(tmp_path / "home") as one:
        yield one
