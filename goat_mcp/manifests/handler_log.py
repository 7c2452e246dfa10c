"""Log lines of handlers go to the server's log, with the tool's name and the call's id, within limits.

Warnings and errors have limits of their own, so that they are not lost among other lines.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from goat_mcp.state.telemetry import Telemetry

LINES_OF_CALL = 200
LINES_OF_MINUTE = 1000
"""Of one resource, in all its calls."""
_MINUTE_S = 60.0
DROPPED = "goat_dropped"
"""A record with this attribute stands for that many lines that the handler's process dropped."""


class _MinuteBudget:
    """How much one resource may still log."""

    def __init__(self, began_s: float) -> None:
        self.began_s = began_s
        self.lines = {True: 0, False: 0}
        self.dropped = 0


class HandlerLog:
    """Makes loggers. Lines over the limit of a minute are reported with the first line after it, or by `close`."""

    def __init__(self, telemetry: Telemetry, clock: Callable[[], float] = time.monotonic) -> None:
        self._telemetry = telemetry
        self._clock = clock
        self._minutes: dict[str, _MinuteBudget] = {}

    def of(self, resource: str, call_id: str) -> logging.Logger:
        """A logger for one call, not registered with `logging`. Closing its handlers reports the dropped lines."""
        logger = logging.Logger(resource)
        logger.addHandler(_ToTelemetry(self._telemetry, self, resource, call_id))
        return logger

    def has_room(self, resource: str, *, is_grave: bool, stands_for: int = 1) -> bool:
        """Whether this resource may log one more line now, which is then counted. It stands for `stands_for` lines."""
        minute = self._now(resource)
        if minute.lines[is_grave] >= LINES_OF_MINUTE:
            minute.dropped += stands_for
            return False
        minute.lines[is_grave] += 1
        return True

    def _now(self, resource: str) -> _MinuteBudget:
        now_s = self._clock()
        minute = self._minutes.get(resource)
        if minute is None or now_s - minute.began_s >= _MINUTE_S:
            self._report_dropped(resource)
            minute = self._minutes[resource] = _MinuteBudget(now_s)
        return minute

    def _report_dropped(self, resource: str) -> None:
        minute = self._minutes.pop(resource, None)
        if minute is not None and minute.dropped:
            self._telemetry.warning(
                "lines of a handler are left out",
                lines=minute.dropped,
                why=f"over {LINES_OF_MINUTE} in a minute",
                tool=resource,
            )

    def close(self) -> None:
        """Report what was dropped."""
        for resource in list(self._minutes):
            self._report_dropped(resource)


def _message(record: logging.LogRecord) -> str:
    """A mistake in a log call is reported in its line; it fails no call."""
    try:
        return record.getMessage()
    except Exception as problem:
        msg: object = record.msg
        what = str.__repr__(msg)[:1000] if isinstance(msg, str) else f"a {type(msg).__name__}"
        return f"{what} cannot be logged with what it was given: {type(problem).__name__}"


class _ToTelemetry(logging.Handler):
    def __init__(self, telemetry: Telemetry, log: HandlerLog, resource: str, call_id: str) -> None:
        super().__init__()
        self._telemetry = telemetry
        self._log = log
        self._resource = resource
        self._fields = {"tool": resource, "call_id": call_id}
        self._lines = {True: 0, False: 0}
        self._dropped = 0
        self._dropped_before = 0

    def emit(self, record: logging.LogRecord) -> None:
        if (lines := getattr(record, DROPPED, None)) is not None:
            self._dropped_before = int(lines)
            return
        is_grave = record.levelno >= logging.WARNING
        if self._lines[is_grave] >= LINES_OF_CALL:
            self._dropped += 1
            return
        if not self._log.has_room(self._resource, is_grave=is_grave):
            return
        self._lines[is_grave] += 1
        write = self._telemetry.warning if is_grave else self._telemetry.debug
        write("a handler says", message=_message(record), level_of_handler=record.levelname.lower(), **self._fields)

    def close(self) -> None:
        """The call is over."""
        super().close()
        dropped, self._dropped, self._dropped_before = self._dropped + self._dropped_before, 0, 0
        if dropped and self._log.has_room(self._resource, is_grave=True, stands_for=dropped):
            why = f"over {LINES_OF_CALL} in a call"
            self._telemetry.warning("lines of a handler are left out", lines=dropped, why=why, **self._fields)
