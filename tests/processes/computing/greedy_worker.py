"""Work that takes as much memory as it is asked to, and then its time."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from goat_mcp.processes.computing.worker_main import serve


def main() -> None:
    serve(_take)


def _take(head: Mapping[str, Any], body: bytes) -> bytes:
    taken = b"x" * (head["mib"] * 1024 * 1024)
    time.sleep(600)
    return taken
