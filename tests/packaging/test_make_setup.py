"""`make setup` with a Python that is too old says so, and leaves nothing behind that the next try would trip over."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.packaging_files import ROOT

# It says that it is old, and runs what `-c` is given.
OLD_PYTHON = f"""#!/bin/sh
exec {shlex.quote(sys.executable)} -c "import sys; sys.version_info = (3, 10, 1); $2"
"""


def made(program: Path) -> Path:
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(OLD_PYTHON)
    program.chmod(0o755)
    return program


@pytest.mark.e2e
@pytest.mark.parametrize("has_old_environment", [False, True])
def test_a_python_that_is_too_old_is_named_with_the_way_out(tmp_path: Path, has_old_environment: bool) -> None:
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    old = made(tmp_path / "programs" / "python3.10")
    if has_old_environment:
        made(tmp_path / ".venv" / "bin" / "python")

    done = subprocess.run(["make", "setup", f"PYTHON={old}"], cwd=tmp_path, capture_output=True, text=True, timeout=60)

    assert done.returncode == 2
    assert "goat-mcp needs Python 3.11 or newer" in done.stderr
    assert "make demo PYTHON=python3.12" in done.stderr
    assert "installing" not in done.stdout
