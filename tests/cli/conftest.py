"""A workspace, a state directory and a configuration of their own, and commands that run there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from goat_mcp.state.directory import StateDirectory
from tests.cli.test_undo import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    folder = tmp_path / "ws"
    folder.mkdir()
    return Shell(folder, tmp_path / "state")


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StateDirectory:
    monkeypatch.setenv("GOAT_MCP_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("GOAT_MCP_CALL", raising=False)
    (tmp_path / "ws").mkdir()
    monkeypatch.chdir(tmp_path / "ws")
    return StateDirectory.default()


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody sits at the terminal that is the standard input."""

    def is_terminal(stream: Any) -> bool:
        return stream.name == "<stdin>"

    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", is_terminal, raising=False)
