"""The connection to the shared state. It is made at first use, and again by itself after it was lost.

What fails is reported and never sent again: whoever asked knows whether that could do harm.
"""

from __future__ import annotations

import asyncio
import importlib.util
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, TypeVar

import anyio

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.state.redis.address import RedisAddress

T = TypeVar("T")
Client = Any
"""redis-py's asyncio client, of one Redis or of a cluster. Its types say `bytes | str` of everything, and it takes a
tenth of a second to load."""
CONNECT_TIMEOUT_S = 2.0
ANSWER_TIMEOUT_S = 3.0
"""Of one command; `ask` gives up after both times together."""
MAX_AT_A_TIME = 50
"""Commands, each on a connection of its own; the next ones wait."""
POLL_S = 1.0
REST_S = 1.0
"""After an answer that did not come in time nobody asks for so long: each that did would wait as long."""
PING_AFTER_S = 15.0
"""A listener hears nothing of a Redis whose machine is gone, unless it asks."""


_TOO_LATE = "no answer in time"


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
        self._turns = asyncio.Semaphore(MAX_AT_A_TIME)
        self._resting_until_s = 0.0
        self._client: Any = None
        self._blocking: Any = None

    def key(self, *parts: str) -> str:
        """A whole key: the prefix, and the parts with colons between them."""
        return self._prefix + ":".join(parts)

    async def ask(self, work: Callable[[Client], Awaitable[T]]) -> T:
        """Run `work` with redis-py's client; keys in it are whole (`key`). Raises `ToolError(IO)` if the shared state
        does not answer: whether it has done what it was asked is not known then."""
        self.asked += 1
        with self._reported(), anyio.fail_after(CONNECT_TIMEOUT_S + ANSWER_TIMEOUT_S):
            if time.monotonic() < self._resting_until_s:
                raise TimeoutError
            async with self._turns:
                return await work(self._connected())

    def ask_here(self, work: Callable[[Client], T]) -> T:
        """As `ask`, with redis-py's blocking client, in the thread of the caller."""
        self.asked += 1
        with self._reported():
            if self._blocking is None:
                self._blocking = _blocking_client(self.address)
            return work(self._blocking)

    def run_script_here(self, script: str, keys: Sequence[str], arguments: Sequence[str | int]) -> Any:
        """As `run_script`, in the thread of the caller."""
        whole = [self.key(key) for key in keys]
        return self.ask_here(lambda client: client.register_script(script)(keys=whole, args=list(arguments)))

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
        listener: Any = None
        heard_s = time.monotonic()

        async def next_message() -> tuple[str, str] | None:
            nonlocal heard_s
            with self._reported():
                message = await listener.get_message(ignore_subscribe_messages=True, timeout=POLL_S)
                now_s = time.monotonic()
                if message is not None:
                    heard_s = now_s
                elif now_s - heard_s > 2 * PING_AFTER_S:
                    raise TimeoutError
                elif now_s - heard_s > PING_AFTER_S:
                    await listener.ping()
            if message is None or message["type"] != "message":
                return None
            return whole[message["channel"]], message["data"]

        try:
            with self._reported(), anyio.fail_after(CONNECT_TIMEOUT_S + ANSWER_TIMEOUT_S):
                listener = self._connected().pubsub()
                await listener.subscribe(*whole)
                confirmed = 0
                while confirmed < len(whole):
                    message = await listener.get_message(timeout=ANSWER_TIMEOUT_S)
                    confirmed += message is not None and message["type"] == "subscribe"
            yield next_message
        finally:
            if listener is not None:
                with anyio.CancelScope(shield=True), suppress(Exception):  # nobody minds how it ends
                    await listener.aclose()

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with suppress(Exception):  # it may be lost already
                await client.aclose()
        self.close_here()

    def close_here(self) -> None:
        """The blocking one of its clients."""
        blocking, self._blocking = self._blocking, None
        if blocking is not None:
            with suppress(Exception):
                blocking.close()

    @contextmanager
    def _reported(self) -> Generator[None]:
        """Raises `ToolError(IO)` for whatever goes wrong on the way or in Redis."""
        from redis.exceptions import RedisError

        try:
            yield
        except (RedisError, OSError, TimeoutError) as problem:
            self.problem = _words(problem)
            if self.problem == _TOO_LATE and time.monotonic() >= self._resting_until_s:
                self._resting_until_s = time.monotonic() + REST_S
            raise ToolError(
                ErrorCode.IO,
                f"the shared state at {self.address.shown} does not answer ({self.problem})",
                "Try again; if it goes on, tell the operator to look at the Redis of state.url with goat-mcp doctor.",
            ) from None
        self.problem = ""

    def _connected(self) -> Any:
        if self._client is None:
            self._client = _client(self.address)
        return self._client


def _words(problem: Exception) -> str:
    from redis.exceptions import AuthenticationError, NoPermissionError
    from redis.exceptions import TimeoutError as RedisTimeout

    if isinstance(problem, TimeoutError | RedisTimeout):
        return _TOO_LATE
    if isinstance(problem, AuthenticationError):
        return "it refuses the user or the password of state.url"
    if isinstance(problem, NoPermissionError):
        return f"the user of state.url may not do that: {problem}"[:300]
    return f"{type(problem).__name__}: {problem}"[:300]


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
    """`library` is redis-py's asyncio or blocking half; what it calls a node and a retry is not in it by name."""
    from redis.backoff import NoBackoff

    # A command that was sent may have had its effect, so there is no second try. That a connection was closed while
    # nobody used it is noticed before something is sent.
    limits: dict[str, Any] = {
        "retry": retry(NoBackoff(), 0),
        "socket_connect_timeout": CONNECT_TIMEOUT_S,
        "socket_timeout": ANSWER_TIMEOUT_S,
        **_tls(address),
    }
    common: dict[str, Any] = {
        "username": address.user or None,
        "password": address.password or None,
        "decode_responses": True,
        "encoding_errors": "replace",  # of what others write there
        "protocol": 2,  # answers have one form on every server
        **limits,
    }
    if address.kind == "cluster":
        nodes = [node(host, port) for host, port in address.hosts]
        return library.RedisCluster(startup_nodes=nodes, **common)
    if address.kind == "sentinel":
        login = {"username": address.sentinel_user or None, "password": address.sentinel_password or None}
        sentinels = library.Sentinel(list(address.hosts), sentinel_kwargs={**login, **limits}, **common)
        return sentinels.master_for(address.name, db=address.database)
    host, port = address.hosts[0]
    return library.Redis(host=host, port=port, db=address.database, **common)


def _tls(address: RedisAddress) -> dict[str, Any]:
    if not address.tls:
        return {}
    files = {"ssl_ca_certs": address.ca, "ssl_certfile": address.cert, "ssl_keyfile": address.key}
    return {"ssl": True, **{option: file for option, file in files.items() if file}}
