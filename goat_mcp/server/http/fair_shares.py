"""How principals share a bounded number of sessions or connections, so that none shuts the others out (R-HTTP-4b)."""

from __future__ import annotations

import time
from dataclasses import dataclass, field


class NoRoom(Exception):
    """The principal holds as many as it may, and all of them are in use."""


@dataclass(eq=False)
class Holding:
    """One session or connection of a principal."""

    principal: str
    requests: int = 0
    """Those in progress; an open stream is one."""
    used_at_s: float = field(default_factory=time.monotonic)

    @property
    def can_be_closed(self) -> bool:
        return True

    def begin(self) -> None:
        self.requests += 1
        self.used_at_s = time.monotonic()

    def end(self) -> None:
        self.requests -= 1
        self.used_at_s = time.monotonic()


@dataclass
class FairShares:
    """`capacity` for all principals together; one alone may not take the `reserve`.

    If there is no room, the idlest holding of the largest holder is closed. Holdings in use are closed only for a
    principal that holds fewer: a principal never loses a request to its own next one.
    """

    capacity: int
    reserve: int = 0
    _held: dict[str, set[Holding]] = field(default_factory=dict[str, set[Holding]])

    def add(self, new: Holding) -> Holding | None:
        """Count it. Returns what has to be closed for it, which does not count any more. Raises `NoRoom`."""
        victim = None
        own = len(self._held.get(new.principal, ()))
        in_all = sum(len(holdings) for holdings in self._held.values())
        if in_all >= self.capacity or own >= max(1, self.capacity - self.reserve):
            victim = self._idlest(new.principal)
            self.remove(victim)
        self._held.setdefault(new.principal, set()).add(new)
        return victim

    def remove(self, holding: Holding) -> None:
        holdings = self._held.get(holding.principal, set())
        holdings.discard(holding)
        if not holdings:
            self._held.pop(holding.principal, None)

    def _idlest(self, asker: str) -> Holding:
        largest = max(self._held, key=lambda principal: (len(self._held[principal]), principal == asker))
        able = [
            holding
            for holding in self._held[largest]
            if holding.can_be_closed and (largest != asker or not holding.requests)
        ]
        if not able:
            raise NoRoom
        return min(able, key=lambda holding: (holding.requests > 0, holding.used_at_s))
