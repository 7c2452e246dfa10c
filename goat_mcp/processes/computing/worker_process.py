"""One process that gets its input at once, gives one answer and can be killed at any time. What it does is not here."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.processes import ProcessGuard

_PACKAGE_PARENT = str(Path(__file__).resolve().parents[3])
_START = "import sys; sys.path[:0] = sys.argv[2:]; import importlib; importlib.import_module(sys.argv[1]).main()"
_PASSED_VARIABLES = ("SYSTEMROOT",)


class WorkerProcess:
    """Runs `main()` of a module. `kill` may come from another thread at any time, also before it has started."""

    def __init__(self, guard: ProcessGuard, module: str, packages: Sequence[str] = ()) -> None:
        """`packages` are those of others that the module imports. Raises `ToolError` where one is not installed."""
        self._guard = guard
        # Without site it starts in half the time, and nothing of the environment reaches it.
        folders = (_PACKAGE_PARENT, *map(_folder_of, packages))
        self._command = (sys.executable, "-I", "-S", "-c", _START, module, *folders)
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_killed = False
        self.exit_code: int | None = None

    def run(self, parts: Sequence[bytes]) -> bytes:
        """What the process wrote. Blocking."""
        process = self._start()
        if process is None:
            return b""
        self._guard.watch(process.pid)
        try:
            out, _ = process.communicate(b"".join(parts))
        finally:
            process.kill()
            process.wait()
            self._guard.forget(process.pid)
        self.exit_code = process.returncode
        return out

    def kill(self) -> None:
        with self._lock:
            self._is_killed = True
            if self._process is not None and self._process.poll() is None:
                self._process.kill()

    def _start(self) -> subprocess.Popen[bytes] | None:
        with self._lock:
            if self._is_killed:
                return None
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd="/" if os.name == "posix" else None,
                env={name: os.environ[name] for name in _PASSED_VARIABLES if name in os.environ},
                process_group=0 if os.name == "posix" else None,
            )
            return self._process


def _folder_of(package: str) -> str:
    found = find_spec(package)
    if found is None or found.origin is None:
        raise ToolError(ErrorCode.NOT_CONFIGURED, f"{package} is not installed", f"Ask the user to install {package}.")
    return str(Path(found.origin).parents[1])
