"""When a rule ends: `Bash(npm run *) until 2026-11-23T18:00:00Z`. From then on it is as if it were not written."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_END = re.compile(r"(?P<rule>.*\S)\s+until\s+(?P<time>[^\s()]+)\Z", re.DOTALL)
_SPAN = re.compile(r"(?P<count>[0-9]{1,4})(?P<unit>[mhdw])\Z")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def split_end(text: str) -> tuple[str, float | None]:
    """A rule without its end, and when that is, in seconds since 1970. Raises `ValueError` for what is no time."""
    found = _END.match(text)
    if found is None:
        return text, None
    try:
        at = datetime.fromisoformat(found["time"])
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise ValueError(f"{found['time'][:40]!r} is no time with its zone; write e.g. until 2026-11-23T18:00:00Z")
    return found["rule"], at.timestamp()


def with_end(rule: str, until_s: float) -> str:
    """A rule that ends then."""
    at = datetime.fromtimestamp(until_s, UTC).replace(microsecond=0)
    return f"{rule} until {at.strftime('%Y-%m-%dT%H:%M:%SZ')}"


def seconds_in(span: str) -> float:
    """`30m`, `1h`, `7d`, `2w`. Raises `ValueError`."""
    found = _SPAN.match(span.strip().lower())
    if found is None or int(found["count"]) == 0:
        raise ValueError(f"{span[:40]!r} is no span of time; write e.g. 30m, 1h, 7d or 2w")
    return timedelta(**{_UNITS[found["unit"]]: int(found["count"])}).total_seconds()
