"""Stands in for `goat_mcp.cli.main`, in a launcher and in a resident process alike: says in what it runs, and ends.

`python -m tests.cli.resident.reporter FOLDER` is a resident process whose sessions do that.
"""

from __future__ import annotations

import fcntl
import json
import locale
import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any

import goat_mcp_launch

LAUNCHER = """
import sys, goat_mcp_launch
from tests.cli.resident import reporter
sys.modules["goat_mcp.cli.main"] = reporter
goat_mcp_launch.TIMEOUT_S = 30
goat_mcp_launch.build_name = lambda: "build"
goat_mcp_launch.main()
"""
"""What `goat-mcp` does, on a machine of any speed."""
UNCHECKED = LAUNCHER.replace("TIMEOUT_S", "check_peer = lambda *words: None; goat_mcp_launch.TIMEOUT_S")
"""A launcher that takes whoever listens: the resident process has to refuse it."""
ENDS_WITH = "--ends-with="
KILLS_ITSELF = "--kills-itself"


def main() -> None:
    """The report is a line of JSON on stdout; the last word may give the exit status."""
    print("to stderr", file=sys.stderr, flush=True)
    print(json.dumps(report()), flush=True)
    if sys.argv[-1] == KILLS_ITSELF:
        os.kill(os.getpid(), signal.SIGTERM)
    if sys.argv[-1].startswith(ENDS_WITH):
        sys.exit(int(sys.argv[-1].removeprefix(ENDS_WITH)))


def report() -> dict[str, Any]:
    status = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines())
    umask = os.umask(0)
    os.umask(umask)
    # Before the list of descriptors there is none of its own.
    inheritable = [number for number in range(64) if _is_inheritable(number)]
    return {
        "environment": sorted((name + b"=" + value).hex() for name, value in os.environb.items()),
        "how": os.environ.get("_GOAT_MCP_STARTED"),
        "folder": _folder(),
        "umask": umask,
        "limits": {name: resource.getrlimit(getattr(resource, name)) for name in dir(resource) if "RLIMIT" in name},
        "nice": os.nice(0),
        "oom": Path("/proc/self/oom_score_adj").read_text(),
        "cgroup": Path("/proc/self/cgroup").read_text(),
        "arguments": [sys.argv, sys.orig_argv],
        "first path": sys.path[0],
        "signals": [status["SigIgn"], status["SigBlk"]],
        "locale": locale.setlocale(locale.LC_CTYPE),
        "clock": time.strftime("%H:%M %Z", time.localtime(0)),
        "streams": [str(Path(f"/proc/self/fd/{number}").readlink()) for number in range(3)],
        "inheritable": inheritable,
        "parent": os.getppid(),
        "pid": os.getpid(),
    }


def _folder() -> str:
    try:
        return str(Path.cwd())
    except OSError as problem:
        return repr(problem)


def _is_inheritable(number: int) -> bool:
    try:
        return os.get_inheritable(number)
    except OSError:
        return False


def serve(folder: str) -> None:
    name = "build"
    goat_mcp_launch.build_name = lambda: name
    from goat_mcp.cli.resident.linux_fork_server import ForkServer

    lock = os.open(f"{folder}/{name}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    sys.modules["goat_mcp.cli.main"] = sys.modules[__name__]
    session = ForkServer(folder, name, lock).serve()
    if session is not None:
        session()


if __name__ == "__main__":
    serve(*sys.argv[1:])
