"""What handlers log goes to the server's log, under the tool's name and the call's id."""

from __future__ import annotations

import logging

from goat_mcp.telemetry import Telemetry


class _ToTelemetry(logging.Handler):
    def __init__(self, telemetry: Telemetry, resource: str, call_id: str) -> None:
        super().__init__()
        self._telemetry = telemetry
        self._fields = {"tool": resource, "call_id": call_id}

    def emit(self, record: logging.LogRecord) -> None:
        write = self._telemetry.warning if record.levelno >= logging.WARNING else self._telemetry.debug
        write("a handler says", message=record.getMessage(), level_of_handler=record.levelname.lower(), **self._fields)


class HandlerLog:
    """Makes loggers."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry

    def of(self, resource: str, call_id: str) -> logging.Logger:
        """A logger for one call. It is not among the process's own: nothing of it stays."""
        logger = logging.Logger(resource)
        logger.addHandler(_ToTelemetry(self._telemetry, resource, call_id))
        return logger
