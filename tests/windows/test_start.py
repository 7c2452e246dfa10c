"""goat-mcp starts on a real Windows (or Wine): each module, and the commands that show what the system has."""

from __future__ import annotations

import importlib
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import goat_mcp

pytestmark = pytest.mark.windows_only("it uses Windows' own calls")


def test_every_module_can_be_imported() -> None:
    names = [one.name for one in pkgutil.walk_packages(goat_mcp.__path__, "goat_mcp.")]

    imported = [importlib.import_module(name).__name__ for name in names if name != "goat_mcp.__main__"]

    assert len(imported) > 500


@pytest.mark.parametrize(("command", "shown"), [("status", "windows: "), ("doctor", "job objects")])
def test_a_command_says_what_the_system_has(command: str, shown: str, tmp_path: Path) -> None:
    environ = {**os.environ, "GOAT_MCP_STATE_DIR": str(tmp_path / "state"), "APPDATA": str(tmp_path)}
    words = [sys.executable, "-m", "goat_mcp", command]

    done = subprocess.run(
        words, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, encoding="utf-8", timeout=120
    )

    assert done.returncode == 0 and shown in done.stdout, done.stderr
