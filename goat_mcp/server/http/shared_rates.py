"""The rate of a principal over all servers that share a state: once a second each tells what was spent with it.

What a principal has spent elsewhere is spent here, too. So no request waits for the shared state, and a principal that
uses several servers at once is over its rate for about a second. While the shared state is away each server counts
for itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial

import anyio

from goat_mcp.core.errors import ToolError
from goat_mcp.server.http.principal_limits import MAX_BUCKETS, PrincipalRates
from goat_mcp.state.redis.connection import Client, RedisConnection

EVERY_S = 1.0
KEPT_S = 3600
_KEY = "rates"


class SharedRates:
    def __init__(self, rates: PrincipalRates, redis: RedisConnection) -> None:
        self._rates = rates
        self._spent = rates.spent = Counter[str]()
        self._redis = redis
        self._totals: dict[str, int] = {}
        """What each principal had spent on all servers, as far as is known here."""

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await anyio.sleep(EVERY_S)
            if self._spent:
                await self.tell()

    async def tell(self) -> None:
        """Nothing is asked for principals that have spent nothing here."""
        spent = dict(self._spent)
        self._spent.clear()
        if len(self._totals) > MAX_BUCKETS:
            self._totals.clear()
        key = self._redis.key(_KEY)
        try:
            totals = await self._redis.ask(partial(_add, key, spent))
        except ToolError:
            return
        for (principal, own), total in zip(spent.items(), totals, strict=True):
            before = self._totals.get(principal, total - own)
            self._totals[principal] = total
            elsewhere = total - before - own
            if elsewhere > 0:
                self._rates.spent_elsewhere(principal, elsewhere)


async def _add(key: str, spent: Mapping[str, int], client: Client) -> list[int]:
    """Count it. Returns what all servers have counted for each."""
    sent = client.pipeline(transaction=False)
    for principal, requests in spent.items():
        sent.hincrby(key, principal, requests)
    sent.expire(key, KEPT_S)
    return (await sent.execute())[: len(spent)]
