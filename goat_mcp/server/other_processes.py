"""Notices what other processes make of shared state while somebody watches it here; nobody watching, nothing runs.

What was changed and who hears of it, the looks know: each compares what is there with what it saw before.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress

import anyio

from goat_mcp.core.errors import ToolError

LOOK_EVERY_S = 1.0
Look = Callable[[Collection[str]], Awaitable[None]]
"""Announces what changed for these principals since the last look; the first one only remembers."""


class OtherProcesses:
    """One per server. `looks` by the URI they are about; they look after what is below it, too."""

    def __init__(self, looks: Callable[[], Mapping[str, Look]], watchers: Callable[[str], Collection[str]]) -> None:
        """`watchers` tells which principals watch a URI, or one below it. `looks` is called when somebody does."""
        self._looks = looks
        self._watchers = watchers
        self._one_at_a_time = anyio.Lock()
        self._watched = anyio.Event()

    async def before_watching(self, uris: Collection[str], principal: str) -> None:
        """Whoever is told now that they watch these is told of every change from now on."""
        for root, look in self._looks().items():
            if any(uri == root or uri.startswith(f"{root}/") for uri in uris):
                await self._run(look, (principal,))
                self._watched.set()

    async def run(self) -> None:
        """Look again and again, as long as it is for somebody, until cancelled."""
        while True:
            await self._watched.wait()
            self._watched = anyio.Event()
            while looks := [(look, who) for root, look in self._looks().items() if (who := self._watchers(root))]:
                for look, principals in looks:
                    await self._run(look, principals)
                await anyio.sleep(LOOK_EVERY_S)

    async def _run(self, look: Look, principals: Collection[str]) -> None:
        # What cannot be looked at now is looked at next time; whoever reads it is told what is wrong.
        async with self._one_at_a_time:
            with suppress(ToolError, OSError):
                await look(principals)
