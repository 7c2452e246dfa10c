"""What a Python handler is given as `ctx`: its call, a logger and the agents. Imported by `worker.py` alone."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

MAX_LOG_LINES = 200
"""Of one call; warnings and what is graver by themselves. The server bounds what it writes, too (`handler_log`)."""
_REPORT_EVERY_S = 0.5


class Logger(logging.Handler):
    """Sends what a handler logs to the server, with the call it belongs to. Lines over the limit are only counted; the
    count is sent now and then, since a call that logs without end may never end itself."""

    def __init__(self, send: Callable[[Mapping[str, Any]], None], call: int) -> None:
        super().__init__()
        self._send = send
        self._call = call
        self._lines = {True: 0, False: 0}
        self._dropped = 0
        self._reported_at_s = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        is_grave = record.levelno >= logging.WARNING
        self._lines[is_grave] += 1
        if self._lines[is_grave] <= MAX_LOG_LINES:
            self._send({"id": self._call, "log": [record.levelname.lower(), self._message(record)[:4000]]})
            return
        self._dropped += 1
        if time.monotonic() - self._reported_at_s >= _REPORT_EVERY_S:
            self.report_dropped()

    def _message(self, record: logging.LogRecord) -> str:
        """A mistake in a log call is reported in its line; it fails no call."""
        try:
            return self.format(record)
        except Exception as problem:
            msg: object = record.msg
            what = str.__repr__(msg)[:1000] if isinstance(msg, str) else f"a {type(msg).__name__}"
            return f"{what} cannot be logged with what it was given: {type(problem).__name__}"

    def report_dropped(self) -> None:
        if self._dropped:
            self._reported_at_s = time.monotonic()
            self._send({"id": self._call, "dropped": self._dropped})


class AgentClient:
    """The agents, asked for through the server."""

    def __init__(self, ask: Callable[[str, Mapping[str, Any]], Coroutine[Any, Any, Any]]) -> None:
        self._ask = ask

    async def request(
        self, target: str, message: str = "", *, timeout_s: float | None = None, correlation_id: str = ""
    ) -> Any:
        params = {"target": target, "message": message, "timeout_s": timeout_s, "correlation_id": correlation_id}
        return await self._ask("request", params)

    async def send(self, target: str, message: str) -> Any:
        return await self._ask("send", {"target": target, "message": message})

    async def spawn(self, type: str, *, name: str = "", message: str = "") -> Any:
        return await self._ask("spawn", {"type": type, "name": name, "message": message})

    async def list(self) -> Any:
        return await self._ask("list", {})

    async def catalog(self) -> Any:
        return await self._ask("catalog", {})


class Context:
    """A handler's `ctx`."""

    def __init__(
        self, call: Mapping[str, Any], config: Mapping[str, Any], send: Callable[[Mapping[str, Any]], None]
    ) -> None:
        given = call["ctx"]
        self.workdir: str = given["workdir"]
        self.tool_call_id: str = given["toolCallId"]
        self.message: Mapping[str, Any] | None = given.get("message")
        self.config = config
        self._call = call
        self._send = send
        self._logger: logging.Logger | None = None
        self.runtime: AgentClient | None = None

    @property
    def logger(self) -> logging.Logger:
        # Made when something is logged: making one takes longer than most of a short call.
        if self._logger is None:
            self._logger = logging.Logger(self._call["export"])
            self._logger.addHandler(Logger(self._send, self._call["id"]))
        return self._logger

    def report_dropped(self) -> None:
        """The call is over."""
        for handler in self._logger.handlers if self._logger is not None else ():
            if isinstance(handler, Logger):
                handler.report_dropped()

    @property
    def toolCallId(self) -> str:  # as the seed spells it
        return self.tool_call_id
