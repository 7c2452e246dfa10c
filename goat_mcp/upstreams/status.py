"""What there is to know of one upstream, for `status`, `list` and error messages. No values of secrets."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from goat_mcp.upstreams.reason_code import ReasonCode, RejectedEntry


class UpstreamState(StrEnum):
    """Where an upstream stands. Only `failed` and `refused` are trouble."""

    IDLE = "idle"
    STARTING = "starting"
    READY = "ready"
    WAITING = "waiting"
    FAILED = "failed"
    REFUSED = "refused"
    STOPPED = "stopped"


@dataclass(frozen=True, kw_only=True)
class UpstreamStatus:
    """One upstream at one moment. `since_s` and `next_try_s` are seconds of the monotonic clock's past and future.

    `reason_code` is empty while nothing is wrong; `detail` says it for people. `escaped_tools` had invisible
    characters in a name or description, `mentions` are texts that speak of another server's tools, `unchecked_outputs`
    are tools with an `outputSchema` we do not check against. `catalog_at_s` is when its list was last read, in seconds
    since 1970.
    """

    name: str
    server: str
    state: UpstreamState
    reason_code: ReasonCode | Literal[""] = ""
    detail: str = ""
    since_s: float = 0.0
    next_try_s: float | None = None
    version: str = ""
    tool_count: int = 0
    resource_count: int = 0
    template_count: int = 0
    prompt_count: int = 0
    """Of what it offers beside tools, as far as anybody has asked for it."""
    withheld: tuple[RejectedEntry, ...] = ()
    quarantined: tuple[str, ...] = ()
    """Tools that are listed as they were pinned, for they have changed since."""
    waiting_pins: tuple[str, ...] = ()
    """What waits for approval in `goat.lock`: kind and name of each."""
    collisions: tuple[str, ...] = ()
    shortened_descriptions: int = 0
    mentions: tuple[str, ...] = ()
    junk_lines: int = 0
    oversized_frames: int = 0
    dropped_logs: int = 0
    """Log messages that clients wanted and did not get: more came than are passed on."""
    dropped_notices: int = 0
    """Notices that came faster than they are read, and were dropped unread."""
    unknown_blocks: int = 0
    escaped_tools: int = 0
    escaped_results: int = 0
    """Results in which something hid that was made visible; not counted where results pass as they come."""
    output_mismatches: int = 0
    unchecked_outputs: tuple[str, ...] = ()
    calls_in_flight: int = 0
    catalog_at_s: float | None = None
    stderr_tail: str = ""
    file: str = ""
