"""Durations in words, the same wherever a person reads one."""

from __future__ import annotations

_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60))


def span(seconds: float) -> str:
    """`3 min`, in the largest unit that fits; never negative."""
    whole = max(0, round(seconds))
    for unit, size in _UNITS:
        if whole >= size:
            return f"{whole // size} {unit}"
    return f"{whole} s"
