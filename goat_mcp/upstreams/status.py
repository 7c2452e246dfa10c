"""What there is to know of one upstream, for `status`, `list` and error messages. No values of secrets.

Reason codes are a closed set of words that programs may rely on; what each means and what to do is in `reason_pages`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal


class ReasonCode(StrEnum):
    """What `status` and `doctor` give as `reason_code`. Empty there means that nothing is wrong."""

    # Its entry in a file.
    CONFIG_ERROR = "config_error"
    DISABLED = "disabled"
    SELF_LAUNCH = "self_launch"
    UNKNOWN_KEY = "unknown_key"
    # Its start.
    COMMAND_NOT_FOUND = "command_not_found"
    FOLDER_NOT_FOUND = "folder_not_found"
    START_FAILED = "start_failed"
    START_TIMEOUT = "start_timeout"
    NO_WORKSPACE = "no_workspace"
    SANDBOX_UNAVAILABLE = "sandbox_unavailable"
    UNREACHABLE = "unreachable"
    AUTH_REQUIRED = "auth_required"
    HANDSHAKE_FAILED = "handshake_failed"
    GATEWAY_CYCLE = "gateway_cycle"
    # Its life.
    STARTING = "starting"
    CONNECTION_BROKE = "connection_broke"
    LOST = "lost"
    # What it lists.
    LIST_FAILED = "list_failed"
    LIST_TRUNCATED = "list_truncated"
    NAME_COLLISION = "name_collision"
    LISTED_TWICE = "listed_twice"
    TOOL_DISABLED = "tool_disabled"
    TASKS_ONLY = "tasks_only"
    BROKEN_ENTRY = "broken_entry"
    BROKEN_SCHEMA = "broken_schema"
    HIDDEN_DATA = "hidden_data"
    SCHEMA_TOO_LARGE = "schema_too_large"
    SCHEMA_TOO_DEEP = "schema_too_deep"
    LAUNCH_CHANGED = "launch_changed"
    QUARANTINED = "quarantined"


@dataclass(frozen=True)
class RejectedEntry:
    """`name` is the upstream's own, cut; `reason` is for people, `reason_code` for programs."""

    name: str
    reason: str
    reason_code: ReasonCode = ReasonCode.BROKEN_ENTRY
    kind: Literal["tool", "resource", "template", "prompt", "skill"] = "tool"


class UpstreamState(StrEnum):
    """Where an upstream stands. Only `failed` and `refused` are trouble."""

    IDLE = "idle"
    STARTING = "starting"
    READY = "ready"
    WAITING = "waiting"
    FAILED = "failed"
    REFUSED = "refused"
    STOPPED = "stopped"


STDERR_ENDS = "; its stderr ends: "
"""In the detail of a failure: after what happened, before what the process wrote last."""


@dataclass(frozen=True)
class UpstreamFailure:
    """One failure of its start or of its connection. `at_s` is in seconds since 1970."""

    reason_code: ReasonCode
    detail: str
    at_s: float


@dataclass(frozen=True, kw_only=True)
class SharingStatus:
    """Who shares the process of an upstream whose entry is shared; `reason` is why nobody does, if that is so.

    `pid` is its process, `broker_pid` the one that owns it, `sessions` the servers of ours that use it now. `folder` is
    where it works, whose ever project that is.
    """

    is_shared: bool
    reason: str = ""
    pid: int = 0
    broker_pid: int = 0
    sessions: tuple[int, ...] = ()
    folder: str = ""


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
    rejected: tuple[RejectedEntry, ...] = ()
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
    calls_waiting: int = 0
    sharing: SharingStatus | None = None
    """None if it is not to be shared, or has no connection yet."""
    catalog_at_s: float | None = None
    stderr_tail: str = ""
    last_failure: UpstreamFailure | None = None
    """Of this process; it stays when the upstream works again."""
    file: str = ""
