"""Calls of handshake clients over HTTP whose stream the client closes: nobody will see what they return (FLW-2).

The stateless era needs none of it: there the SDK itself cancels such a request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError

from goat_mcp.server.client_channel import DirectChannel, gone

WATCHED_AFTER_S = 0.05
"""Most calls are over by then, and cost no task of their own."""

T = TypeVar("T")


async def while_open(request: Any, dialogue: DirectChannel, call: Awaitable[T]) -> T:
    """The call's result; the call is cancelled once its stream is closed. Raises `MCPError` then, for nobody."""
    loop = asyncio.get_running_loop()
    watch: list[asyncio.Task[None]] = []
    with anyio.CancelScope() as scope:

        async def cancel_when_gone() -> None:
            await gone(request)
            if not dialogue.is_asking:
                scope.cancel()

        timer = loop.call_later(WATCHED_AFTER_S, lambda: watch.append(loop.create_task(cancel_when_gone())))
        try:
            return await call
        finally:
            timer.cancel()
            for task in watch:
                task.cancel()
    raise MCPError(types.CONNECTION_CLOSED, "the client is gone")
