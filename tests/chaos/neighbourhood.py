"""Who lives beside the healthy upstream: one bad neighbour of each kind, over stdio and over HTTP, as entries."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SERVERS = Path(__file__).parent / "servers"
HEALTHY = "healthy"
HEALTHY_WEB = "healthy-web"
BAD_OVER_STDIO = (
    "hangs-at-start",
    "hangs-in-calls",
    "crashes-at-start",
    "crashes-in-calls",
    "crash-loop",
    "logs",
    "notices",
    "stderr",
    "junk",
    "broken-json",
    "wrong-ids",
    "lies",
    "changing",
    "huge-result",
    "huge-line",
    "large-result",
    "asks",
    "deaf",
    "progress",
    "drip",
)
BAD_OVER_HTTP = (
    "hangs-at-start",
    "hangs-in-calls",
    "drops",
    "drip",
    "status-500",
    "broken-json",
    "wrong-ids",
    "huge-result",
    "notices",
)
BAD = (*BAD_OVER_STDIO, *(f"web-{kind}" for kind in BAD_OVER_HTTP))
SILENT = ("hangs-at-start", "web-hangs-at-start")
"""Whose calls take half a minute to fail: nobody is there yet to take them."""
CALL_TIMEOUT_S = 1.0
PATIENT = {"huge-result": 60, "huge-line": 60, "large-result": 60, "web-huge-result": 60}
"""What takes long and ends, in seconds: it is to end."""


def over_stdio(kind: str, mark: Path) -> dict[str, Any]:
    """An entry of `servers/neighbour.py`; without site packages it starts sooner and needs less."""
    return {"command": sys.executable, "args": ["-IS", str(SERVERS / "neighbour.py"), kind, str(mark)]}


def entries(web_port: int, mark: Path) -> dict[str, dict[str, Any]]:
    """All of them, with `mark` in their command lines.

    The bad ones are started unasked and started again, so that they are bad all the time.
    """
    url = f"http://127.0.0.1:{web_port}"
    targets = {kind: over_stdio(kind, mark) for kind in BAD_OVER_STDIO}
    targets |= {f"web-{kind}": {"url": f"{url}/{kind}"} for kind in BAD_OVER_HTTP}
    return {
        HEALTHY: over_stdio("healthy", mark),
        HEALTHY_WEB: {"url": f"{url}/healthy"},
        **{name: {**target, **_badly(name)} for name, target in targets.items()},
    }


def _badly(name: str) -> dict[str, Any]:
    return {"start": "eager", "concurrency": 2, "timeout_s": PATIENT.get(name, CALL_TIMEOUT_S)}


@contextmanager
def web() -> Generator[int]:
    """The neighbours over HTTP: one process, whose port this is."""
    process = subprocess.Popen(
        [sys.executable, "-IS", str(SERVERS / "web.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait(20)
