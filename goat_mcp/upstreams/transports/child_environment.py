"""The environment of an upstream's process: an allow-list and what its entry declares, nothing else (R-UP-8, ISO-5)."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

_PASSED_ON = frozenset({"PATH", "HOME", "LANG", "TERM", "TMPDIR", "USER", "LOGNAME", "SHELL"})
_PASSED_ON_WINDOWS = frozenset(
    {
        "APPDATA",
        "COMSPEC",
        "HOMEDRIVE",
        "HOMEPATH",
        "LOCALAPPDATA",
        "PATH",
        "PATHEXT",
        "PROCESSOR_ARCHITECTURE",
        "PROGRAMFILES",
        "SYSTEMDRIVE",
        "SYSTEMROOT",
        "TEMP",
        "TMP",
        "USERNAME",
        "USERPROFILE",
    }
)


def child_environment(declared: Mapping[str, str], ours: Mapping[str, str] | None = None) -> dict[str, str]:
    """Variables for a child: the allow-listed ones of `ours` (default: this process), overlaid with `declared`."""
    source = os.environ if ours is None else ours
    allowed = _PASSED_ON_WINDOWS if sys.platform == "win32" else _PASSED_ON
    kept = {
        name: value
        for name, value in source.items()
        # `()` starts an exported shell function, which is code rather than data.
        if (name.upper() in allowed or name.startswith("LC_")) and not value.startswith("()")
    }
    return {**kept, **declared}
