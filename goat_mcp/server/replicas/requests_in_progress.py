"""How many requests this replica is answering itself, for one that leaves: it waits for them."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, cast

import anyio
from starlette.types import Scope

from goat_mcp.server.http.fast_path import MESSAGE

_ENDLESS = "subscriptions/listen"


class RequestsInProgress:
    """Those with an answer of their own; not the streams of notices, which end with the server."""

    def __init__(self) -> None:
        self._count = 0
        self._none: anyio.Event | None = None

    @contextmanager
    def one(self, scope: Scope) -> Generator[None]:
        found = scope.get(MESSAGE)
        message = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
        if "id" not in message or message.get("method") == _ENDLESS:
            yield
            return
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1
            if not self._count and self._none is not None:
                self._none.set()

    async def none(self) -> None:
        """Wait until there is none."""
        while self._count:
            self._none = anyio.Event()
            await self._none.wait()
        self._none = None
