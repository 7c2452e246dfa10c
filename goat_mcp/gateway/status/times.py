"""Moments as status and logs write them."""

from __future__ import annotations

from datetime import UTC, datetime


def seconds(text: str) -> float:
    """The seconds since 1970 of what `iso` wrote."""
    return datetime.fromisoformat(text).timestamp()


def iso(at_s: float) -> str:
    """Seconds since 1970 as `2026-11-22T10:00:00Z`."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
