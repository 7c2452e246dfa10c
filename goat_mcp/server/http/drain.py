"""How a server leaves on SIGTERM: it says that it is not ready, finishes what runs, and stops (at most `drain_s`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import anyio

Work = Callable[[], Awaitable[None]]


@dataclass
class Drain:
    """`unfinished` return once nothing of theirs runs any more. A second signal stops the server at once."""

    stop: Callable[[], None]
    leave_delay_s: float
    """How long a load balancer takes to see that the server leaves."""
    drain_s: float
    before: Work
    unfinished: Sequence[Work]
    _begun: anyio.Event = field(default_factory=anyio.Event)

    @property
    def is_leaving(self) -> bool:
        return self._begun.is_set()

    def begin(self) -> None:
        """On the event loop. What asks from now on hears that the server leaves."""
        if self.is_leaving or not self.drain_s:
            self.stop()
        self._begun.set()

    async def run(self) -> None:
        """Wait for `begin`, then for what runs, then stop. Cancelled if the server has stopped by itself."""
        await self._begun.wait()
        with anyio.move_on_after(self.drain_s):
            await self.before()
            await anyio.sleep(self.leave_delay_s)
            for finished in self.unfinished:
                await finished()
        self.stop()
