"""A plain bubblewrap for tests of what is put into one, and why there is none here."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

PATH = "/usr/local/bin:/usr/bin:/bin"
_LIMIT_S = 60


def bubblewrap(root: Path, readable: Sequence[Path] = (), options: Sequence[str] = ()) -> list[str]:
    """The arguments up to the program: no network, the system and `readable` to read, `root` to write."""
    shown = [word for path in readable for word in ("--ro-bind", str(path), str(path))]
    return [
        *("bwrap", "--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--cap-drop", "ALL"),
        *("--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib"),
        *("--symlink", "usr/lib64", "/lib64", "--ro-bind-try", "/etc/ssl", "/etc/ssl"),
        *("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", *shown),
        *("--bind", str(root), str(root), "--chdir", str(root), *options, "--"),
    ]


def _why_not() -> str:
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed"
    ran = subprocess.run([*bubblewrap(Path("/tmp")), "true"], capture_output=True, text=True, timeout=_LIMIT_S)
    return ran.stderr.strip() if ran.returncode else ""


WHY_NOT = _why_not()
needs_bubblewrap = pytest.mark.skipif(bool(WHY_NOT), reason=f"bubblewrap cannot work here: {WHY_NOT}")
