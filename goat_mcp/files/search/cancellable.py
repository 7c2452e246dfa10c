"""Blocking searches for async callers: in a thread, ended at once when the call is cancelled."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread

from goat_mcp.files.search.clock import SearchClock

ResultT = TypeVar("ResultT")
SEARCH_LIMIT_S = 20.0
"""Then the answer is what was found so far (security.md, R-LIMIT-1)."""


async def in_thread(work: Callable[[SearchClock], ResultT], limit_s: float = SEARCH_LIMIT_S) -> ResultT:
    clock = SearchClock(limit_s)
    try:
        return await anyio.to_thread.run_sync(work, clock, abandon_on_cancel=True)
    finally:
        clock.cancel()
