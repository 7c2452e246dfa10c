"""What a worker's process forbids itself, so that it ends even if nobody kills it."""

from __future__ import annotations

import sys
from contextlib import suppress


def limit_resources(*, cpu_s: int, memory_bytes: int) -> None:
    """From now on this process gets no more than that, and writes no file."""
    if sys.platform == "win32":
        return
    import resource

    for kind, most in (
        (resource.RLIMIT_CPU, cpu_s),
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
    ):
        # Not every system has every limit, and a lower one may be in force.
        with suppress(ValueError, OSError):
            resource.setrlimit(kind, (most, most))
