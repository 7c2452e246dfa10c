"""goat-mcp as a process that believes to run in WSL: `python -m tests.in_wsl WSL_CONF WORDS...`. See `fake_wsl`."""

from __future__ import annotations

import sys
from pathlib import Path

from goat_mcp.cli.main import main
from goat_mcp.core import platform
from goat_mcp.processes import wsl

if __name__ == "__main__":
    platform.IN_WSL = True  # pyright: ignore[reportAttributeAccessIssue]  # what a test does with `monkeypatch`
    wsl.CONFIG_FILE = Path(sys.argv.pop(1))  # pyright: ignore[reportAttributeAccessIssue]
    main()
