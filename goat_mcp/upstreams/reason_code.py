"""Why an upstream, or a part of one, is not used: a closed set of words that programs may rely on.

What each means and what to do about it, for people, is in `reason_pages`.
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
    kind: Literal["tool", "resource", "template", "prompt"] = "tool"
