"""The connection to the shared state. It is made at first use, and again by itself after it was lost."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.state.redis.address import RedisAddress

T = TypeVar("T")
Client = Any
"""redis-py's asyncio client, of one Redis or of a cluster. Its types say `bytes | str` of everything, and it takes a
tenth of a second to load."""
CONNECT_TIMEOUT_S = 2.0
ANSWER_TIMEOUT_S = 3.0
MAX_CONNECTIONS = 50
POLL_S = 1.0


def check_installed() -> None:
    """Raises `ToolError(CONFIG)` if redis-py is not there."""
    if importlib.util.find_spec("redis") is None:
        raise ToolError(
            ErrorCode.CONFIG,
            "state.url needs the Python package redis, which is not installed",
            "Install it with goat-mcp: pipx install 'goat-mcp[redis]', or leave state.url out.",
        )


class RedisConnection:
    """For one event loop. All keys begin with one hash tag, so that a script may use several of them in a cluster."""

    def __init__(self, address: RedisAddress, prefix: str) -> None:
        self.address = address
        self.asked = 0
        """How often this process has asked."""
        self.problem = ""
        """Why the last time failed, if it did."""
        self._prefix = f"{{{prefix}}}:"
        self._client: Any = None
        self._blocking: Any = None

    def key(self, *parts: str) -> str:
        """A whole key: the prefix, and the parts with colons between them."""
        return self._prefix + ":".join(parts)

    async def ask(self, work: Callable[[Client], Awaitable[T]]) -> T:
        """Run `work` with redis-py's client; keys in it are whole (`key`). Raises `ToolError(IO)` if the shared state
        does not answer: whether it has done what it was asked is not known then."""
        with self._asking():
            return await work(self._connected())

    def ask_here(self, work: Callable[[Client], T]) -> T:
        """As `ask`, with redis-py's blocking client, in the thread of the caller."""
        with self._asking():
            if self._blocking is None:
                self._blocking = _blocking_client(self.address)
            return work(self._blocking)

    def run_script_here(self, script: str, keys: Sequence[str], arguments: Sequence[str | int]) -> Any:
        """As `run_script`, in the thread of the caller."""
        whole = [self.key(key) for key in keys]
        return self.ask_here(lambda client: client.register_script(script)(keys=whole, args=list(arguments)))

    @contextmanager
    def _asking(self) -> Generator[None]:
        from redis.exceptions import RedisError

        self.asked += 1
        try:
            yield
        except (RedisError, OSError, TimeoutError) as problem:
            self.problem = f"{type(problem).__name__}: {problem}"[:300]
            raise ToolError(
                ErrorCode.IO,
                f"the shared state at {self.address.shown} does not answer ({self.problem})",
                "Try again; if it goes on, tell the operator to look at the Redis of state.url.",
            ) from None
        self.problem = ""

    async def ping(self) -> float:
        """How long an answer takes, in ms. Raises `ToolError(IO)`."""
        begun_s = time.perf_counter()
        await self.ask(lambda client: client.execute_command("PING"))
        return (time.perf_counter() - begun_s) * 1000

    async def read(self, *key: str) -> str | None:
        return await self.ask(lambda client: client.get(self.key(*key)))

    async def read_all(self, keys: Sequence[str]) -> list[str | None]:
        """The values of several keys, which are without the prefix."""
        if not keys:
            return []
        return await self.ask(lambda client: client.mget([self.key(key) for key in keys]))

    async def write(self, key: str, value: str, *, lasts_s: float | None = None) -> None:
        expiry = None if lasts_s is None else int(lasts_s * 1000)
        await self.ask(lambda client: client.set(self.key(key), value, px=expiry))

    async def replace(self, key: str, value: str, *, lasts_s: float | None = None) -> str | None:
        """Write it, and return what was there."""
        expiry = None if lasts_s is None else int(lasts_s * 1000)
        return await self.ask(lambda client: client.set(self.key(key), value, px=expiry, get=True))

    async def add(self, key: str, value: str, *, lasts_s: float) -> bool:
        """Write it if nothing is there. Returns whether that was so: of all who ask, one gets True."""
        added = await self.ask(lambda client: client.set(self.key(key), value, px=int(lasts_s * 1000), nx=True))
        return bool(added)

    async def remove(self, key: str) -> bool:
        return bool(await self.ask(lambda client: client.delete(self.key(key))))

    async def run_script(self, script: str, keys: Sequence[str], arguments: Sequence[str | int]) -> Any:
        """Run a Lua script as one step. Keys are without the prefix. Redis keeps its text: it is sent once."""
        whole = [self.key(key) for key in keys]
        return await self.ask(lambda client: client.register_script(script)(keys=whole, args=list(arguments)))

    async def publish(self, channel: str, message: str) -> None:
        """To those who listen now: nobody else ever sees it."""
        await self.ask(lambda client: client.execute_command("PUBLISH", self.key(channel), message))

    @asynccontextmanager
    async def listening(self, *channels: str) -> AsyncGenerator[Callable[[], Awaitable[tuple[str, str] | None]]]:
        """Yields what waits for the next message: its channel without the prefix, and its text; None after `POLL_S`
        without one. Both raise `ToolError(IO)` if the connection is lost: messages are lost with it."""
        whole = {self.key(channel): channel for channel in channels}
        async with self._connected().pubsub() as listener:

            async def subscribe(_: Client) -> None:
                await listener.subscribe(*whole)
                for _confirmed in whole:
                    await listener.get_message(timeout=ANSWER_TIMEOUT_S)

            async def one(_: Client) -> tuple[str, str] | None:
                message = await listener.get_message(ignore_subscribe_messages=True, timeout=POLL_S)
                return None if message is None else (whole[message["channel"]], message["data"])

            async def next_message() -> tuple[str, str] | None:
                return await self.ask(one)

            await self.ask(subscribe)
            yield next_message

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()
        self.close_here()

    def close_here(self) -> None:
        """The blocking one of its clients."""
        blocking, self._blocking = self._blocking, None
        if blocking is not None:
            blocking.close()

    def _connected(self) -> Any:
        if self._client is None:
            self._client = _client(self.address)
        return self._client


def _client(address: RedisAddress) -> Any:
    import redis.asyncio
    from redis.asyncio.cluster import ClusterNode
    from redis.asyncio.retry import Retry

    return _made(address, redis.asyncio, ClusterNode, Retry)


def _blocking_client(address: RedisAddress) -> Any:
    import redis
    from redis.cluster import ClusterNode
    from redis.retry import Retry

    return _made(address, redis, ClusterNode, Retry)


def _made(address: RedisAddress, library: Any, node: Any, retry: Any) -> Any:
    from redis.backoff import NoBackoff

    common: dict[str, Any] = {
        "username": address.user or None,
        "password": address.password or None,
        "decode_responses": True,
        "socket_connect_timeout": CONNECT_TIMEOUT_S,
        "socket_timeout": ANSWER_TIMEOUT_S,
        "max_connections": MAX_CONNECTIONS,
        "ssl": address.tls,
    }
    # Once more, for a connection that the server has ended meanwhile. More patience would make whoever asks wait.
    if address.kind == "cluster":
        return library.RedisCluster(startup_nodes=[node(host, port) for host, port in address.hosts], **common)
    once_more = retry(NoBackoff(), 1)
    if address.kind == "sentinel":
        to_sentinels = {"ssl": address.tls, **_timeouts()}
        sentinels = library.Sentinel(list(address.hosts), sentinel_kwargs=to_sentinels, **common)
        return sentinels.master_for(address.name, retry=once_more)
    host, port = address.hosts[0]
    return library.Redis(host=host, port=port, db=address.database, retry=once_more, **common)


def _timeouts() -> dict[str, float]:
    return {"socket_connect_timeout": CONNECT_TIMEOUT_S, "socket_timeout": ANSWER_TIMEOUT_S}
