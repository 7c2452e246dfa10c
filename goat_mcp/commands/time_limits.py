"""How long a command may run, and how long its call waits for it."""

from __future__ import annotations

from dataclasses import dataclass

from goat_mcp.core.context import ToolContext
from goat_mcp.processes.bash_options import BashOptions

DEFAULT_TIMEOUT_MS = 120_000
MAX_TIMEOUT_MS = 600_000
DEFAULT_BACKGROUND_MS = 1_800_000
MAX_BACKGROUND_MS = 7_200_000


@dataclass(frozen=True)
class TimeLimits:
    """`wait_s` is None where the call waits until the command has ended. `timeout_ms` is what was asked for."""

    run_s: float
    wait_s: float | None
    timeout_ms: int | None
    notices: tuple[str, ...] = ()


def time_limits(asked_ms: int | None, options: BashOptions, ctx: ToolContext, *, in_background: bool) -> TimeLimits:
    """Those of one call."""
    most = MAX_BACKGROUND_MS if in_background else MAX_TIMEOUT_MS
    timeout_ms = None if asked_ms is None else min(asked_ms, most)
    notices = () if timeout_ms == asked_ms else (f"timeout {asked_ms} ms was reduced to {most} ms",)
    auto_s = ctx.setting("bash.auto_background_after_s", options.auto_background_after_s)
    if timeout_ms is not None:
        run_s = timeout_ms / 1000
    else:
        run_s = (DEFAULT_BACKGROUND_MS if in_background or auto_s else DEFAULT_TIMEOUT_MS) / 1000
    wait_s = min(auto_s, ctx.wait_left_s()) if auto_s else None
    if wait_s is not None and run_s <= wait_s:
        wait_s = None
    return TimeLimits(run_s, wait_s, timeout_ms, notices)
