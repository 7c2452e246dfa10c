"""The eight levels of log messages in MCP, and which of them a client wants (FLW-4)."""

from __future__ import annotations

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


def is_wanted(level: object, least: str) -> bool:
    """Whether a message of `level` is to be told to whoever wants `least` and above; nothing is where it is empty."""
    return level in LEVELS and least in LEVELS and LEVELS.index(str(level)) >= LEVELS.index(least)


def more_verbose(one: str, other: str) -> bool:
    """Whether `one` lets more through than `other`."""
    return one in LEVELS and (other not in LEVELS or LEVELS.index(one) < LEVELS.index(other))
