"""The way to a handshake client beside its calls, for as long as its connection lasts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import anyio
import mcp_types as types
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError


class SessionNotices:
    """A `NotificationTarget` over one connection."""

    def __init__(self, session: ServerSession, level: Callable[[], str]) -> None:
        self._session = session
        self._level = level

    @property
    def log_level(self) -> str:
        return self._level()

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        notification = types.server_notification_adapter.validate_python({"method": method, "params": dict(params)})
        try:
            await self._session.send_notification(notification)
        except (MCPError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            return
