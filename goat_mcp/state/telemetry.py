"""Log lines, to stderr, one each: JSON, and words on a terminal. structlog is loaded with the first line."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Callable, Generator, Iterator, Mapping, MutableMapping
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

    def _rendered(self, logger: Any, method: str, event: MutableMapping[str, Any]) -> str:
        line = json.dumps(event, default=repr)
        self._copy(line)
        return "\n".join(_wrapped(in_words(json.loads(line)))) if sys.stderr.isatty() else line

    def _copy(self, line: str) -> None:
        if self._copy_to is not None:
            self._copy_to(line)
        elif len(self._early) < _MAX_EARLY_LINES:
            self._early.append(line)

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
        if rank >= LEVELS.index(self._level):
            return True
        return bool(self._requested) and any(rank >= LEVELS.index(wanted) for wanted in self._requested)

    @cached_property
    def _log(self) -> Any:
        import structlog

        structlog.configure(
            processors=[
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                structlog.processors.format_exc_info,
                self._without_secrets,  # after the traceback has become text, which quotes values
                self._rendered,
            ],
            logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        )
        return structlog.get_logger("goat_mcp")

    def _without_secrets(self, logger: Any, method: str, event: MutableMapping[str, Any]) -> dict[str, Any]:
        return self._redactor.tree(event)


def in_words(event: Mapping[str, Any]) -> str:
    """One event as a person reads it, in visible ASCII: `goat-mcp: warning: WHAT (field: value, ...)`."""
    shown = {key: value for key, value in event.items() if key not in ("event", "level", "timestamp", "exception")}
    fields = ", ".join(f"{key}: {_visible(value)}" for key, value in shown.items())
    first = f"goat-mcp: {event.get('level', 'note')}: {_visible(event.get('event', ''))}"
    trace = [_visible(line) for line in str(event.get("exception", "")).splitlines()]
    return "\n".join([f"{first} ({fields})" if fields else first, *trace])


def _wrapped(text: str) -> Iterator[str]:
    width = shutil.get_terminal_size().columns
    for line in text.splitlines():
        yield from textwrap.wrap(line, width, subsequent_indent="  ", break_long_words=False) or [""]


def _visible(value: Any) -> str:
    text = json.dumps(value).replace("\x7f", "\\u007f")
    return text[1:-1].replace('\\"', '"') if isinstance(value, str) else text
