"""The least level of log messages that each client wants (FLW-4): set once a session, or named by each request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_types import LOG_LEVEL_META_KEY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

DEFAULT_LEVEL = "info"
"""Of a handshake client that set none; the protocol leaves it to the server."""
MAX_SESSIONS = 1000


class LogLevels:
    """Levels by session key; the oldest are forgotten."""

    def __init__(self) -> None:
        self._levels: dict[str, str] = {}

    def set(self, session_key: str, level: str) -> None:
        self._levels.pop(session_key, None)
        self._levels[session_key] = level
        if len(self._levels) > MAX_SESSIONS:
            self._levels.pop(next(iter(self._levels)))

    def forget(self, session_key: str) -> None:
        """The session is over."""
        self._levels.pop(session_key, None)

    def of(self, session_key: str, protocol_version: str, meta: Mapping[str, Any]) -> str:
        """Empty where nothing is wanted: the stateless era has only what the request asks for."""
        if protocol_version in MODERN_PROTOCOL_VERSIONS:
            return str(meta.get(LOG_LEVEL_META_KEY) or "")
        return self._levels.get(session_key, DEFAULT_LEVEL)
