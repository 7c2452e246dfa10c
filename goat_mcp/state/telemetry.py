"""Log lines, to stderr, one each. structlog is loaded with the first line, not at start."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, MutableMapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from typing import Any

from goat_mcp.core.redaction import Redactor

_MAX_EARLY_LINES = 200
LEVELS = ("debug", "info", "warning", "error")
_UNCHANGED = nullcontext()


class Telemetry:
    """The process's log, without secrets that `redactor` knows or recognises. Nothing of it ever reaches a client."""

    def __init__(self, level: str = "warning", redactor: Redactor | None = None) -> None:
        self._level = level
        self._redactor = redactor or Redactor()
        self._requested: list[str] = []
        self._copy_to: Callable[[str], None] | None = None
        self._early: list[str] = []

    def at_least(self, level: str | None) -> AbstractContextManager[None]:
        """Log what `level` asks for, meanwhile. It never makes the log quieter; None changes nothing."""
        return _UNCHANGED if level is None else self._with_level(level)

    @contextmanager
    def _with_level(self, level: str) -> Generator[None]:
        self._requested.append(level)
        try:
            yield
        finally:
            self._requested.remove(level)

    def copy_to(self, write: Callable[[str], None]) -> None:
        """Hand every line to `write` as well, those so far first. It must neither raise nor wait."""
        for line in self._early:
            write(line)
        self._early.clear()
        self._copy_to = write

    def _copied(self, logger: Any, method: str, line: Any) -> Any:
        if self._copy_to is not None:
            self._copy_to(line)
        elif len(self._early) < _MAX_EARLY_LINES:
            self._early.append(line)
        return line

    def debug(self, event: str, **fields: Any) -> None:
        if self._shows("debug"):
            self._log.debug(event, **fields)

    def warning(self, event: str, **fields: Any) -> None:
        if self._shows("warning"):
            self._log.warning(event, **fields)

    def unexpected(self, call_id: str, tool: str, bug: BaseException) -> None:
        """A bug: its traceback, once, under the call id that the client was told."""
        self._log.error("call failed unexpectedly", call_id=call_id, tool=tool, exc_info=bug)

    def _shows(self, level: str) -> bool:
        rank = LEVELS.index(level)
        return rank >= LEVELS.index(self._level) or any(rank >= LEVELS.index(wanted) for wanted in self._requested)

    @cached_property
    def _log(self) -> Any:
        import sys

        import structlog

        structlog.configure(
            processors=[
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                structlog.processors.format_exc_info,
                self._without_secrets,  # after the traceback has become text, which quotes values
                structlog.processors.JSONRenderer(ensure_ascii=True),
                self._copied,
                *([_in_words] if sys.stderr.isatty() else []),
            ],
            logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        )
        return structlog.get_logger("goat_mcp")

    def _without_secrets(self, logger: Any, method: str, event: MutableMapping[str, Any]) -> dict[str, Any]:
        return self._redactor.tree(event)


def _in_words(logger: Any, method: str, line: Any) -> str:
    """For a terminal: what a person reads. Files and pipes have the JSON."""
    fields: dict[str, Any] = json.loads(line)
    event, bug = fields.pop("event", ""), fields.pop("exception", "")
    told = ", ".join(f"{name} {value}" for name, value in fields.items() if name not in ("level", "timestamp"))
    first = f"goat-mcp: {event}: {told}" if told else f"goat-mcp: {event}"
    return "\n".join(part for part in (" ".join(first.split()), bug) if part)
