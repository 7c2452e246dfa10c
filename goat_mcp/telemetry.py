"""Log lines, to stderr, one each. structlog is loaded with the first line, not at start."""

from __future__ import annotations

import logging
from functools import cached_property
from typing import Any


class Telemetry:
    """The process's log. Nothing logged here ever reaches a client."""

    def __init__(self, level: str = "warning") -> None:
        self._level = level

    def debug(self, event: str, **fields: Any) -> None:
        if self._level == "debug":
            self._log.debug(event, **fields)

    def warning(self, event: str, **fields: Any) -> None:
        if self._level != "error":
            self._log.warning(event, **fields)

    def unexpected(self, call_id: str, tool: str, bug: Exception) -> None:
        """A bug: its traceback, once, under the call id that the client was told."""
        self._log.error("call failed unexpectedly", call_id=call_id, tool=tool, exc_info=bug)

    @cached_property
    def _log(self) -> Any:
        import sys

        import structlog

        structlog.configure(
            processors=[
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                structlog.processors.format_exc_info,
                structlog.processors.JSONRenderer(ensure_ascii=True),
            ],
            wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[self._level.upper()]),
            logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        )
        return structlog.get_logger("goat_mcp")
