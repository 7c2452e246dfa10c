"""What the shared state keeps of what a database of one machine keeps otherwise: the same protocols, over Redis."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from goat_mcp.state.redis.connection import RedisConnection
from goat_mcp.state.session_settings import KEEP_S as SETTINGS_KEPT_S
from goat_mcp.state.todos import KEEP_S as TODOS_KEPT_S
from goat_mcp.state.todos import Todo


class RedisTodoStore:
    """A `TodoStore`."""

    def __init__(self, redis: RedisConnection) -> None:
        self._redis = redis

    async def read(self, owner: str) -> list[Todo]:
        return _todos(await self._redis.read("todos", owner))

    async def replace(self, owner: str, todos: Sequence[Todo]) -> list[Todo]:
        items = json.dumps([dict(todo) for todo in todos])
        return _todos(await self._redis.replace(f"todos:{owner}", items, lasts_s=TODOS_KEPT_S))


def _todos(stored: str | None) -> list[Todo]:
    try:
        return json.loads(stored) if stored else []
    except ValueError:
        return []  # a list that is damaged is made again with the next change


class RedisConfigStore:
    """A `ConfigStore`: a hash for each session, which goes a day after its last change."""

    def __init__(self, redis: RedisConnection) -> None:
        self._redis = redis

    async def read(self, session: str) -> dict[str, Any]:
        stored: dict[str, str] = await self._redis.ask(lambda client: client.hgetall(self._key(session)))
        return {key: json.loads(value) for key, value in stored.items()}

    async def write(self, session: str, key: str, value: Any) -> None:
        name, text = self._key(session), json.dumps(value)
        await self._redis.ask(
            lambda client: client.pipeline().hset(name, key, text).expire(name, int(SETTINGS_KEPT_S)).execute()
        )

    async def remove(self, session: str, key: str) -> None:
        await self._redis.ask(lambda client: client.hdel(self._key(session), key))

    def _key(self, session: str) -> str:
        # A client may have half of a surrogate pair in its name, which is no UTF-8.
        return self._redis.key("settings", session.encode("ascii", "backslashreplace").decode())


_RUN = "local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')"
_ISSUE = f"""{_RUN}
redis.call('SET', KEYS[1], run, 'PX', ARGV[1])
"""
_USE = f"""{_RUN}
local issued = redis.call('GET', KEYS[1])
redis.call('DEL', KEYS[1])
return issued == run and 1 or 0
"""


class RedisTokens:
    """`OneTimeTokens`. One that was issued is there until it is used: a Redis that has lost everything grants none.

    Neither does one that has lost a little, as after a restart from a file or with another primary: it may not know of
    a use. So a token is good only in the run of the server that it was issued in.
    """

    def __init__(self, redis: RedisConnection, lifetime_s: float) -> None:
        self._redis = redis
        self._lifetime_s = lifetime_s

    async def issue(self, token: str) -> None:
        await self._redis.run_script(_ISSUE, [f"token:{token}"], [int(self._lifetime_s * 1000)])

    async def use(self, token: str) -> bool:
        return await self._redis.run_script(_USE, [f"token:{token}"], []) == 1
