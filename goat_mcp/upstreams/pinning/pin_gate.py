"""Between a call and a definition that has changed: a call waits for the list that it needs, and is held against it.

A new process may offer something else than the last one, and a notice may say that the list has changed: a call that
comes after either waits until that list is read. A change that nobody announces is seen at the next list.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import anyio

from goat_mcp.catalog.offerings import Kind
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.upstreams.listing.proxy_tool import UpstreamSpec
from goat_mcp.upstreams.pinning.pins import UpstreamPins
from goat_mcp.upstreams.transports.live_connection import LiveConnection

MAX_WAIT_S = 20.0


class _Lists:
    """How often one connection has been listed."""

    def __init__(self) -> None:
        self.begun = 0
        self.ended = 0
        self.end = anyio.Event()


class PinGate:
    """The gate of one upstream's tools, or of what else it offers."""

    def __init__(
        self, pins: UpstreamPins, announced: Callable[[LiveConnection], bool] = lambda one: one.tools_changed.is_set()
    ) -> None:
        """`announced` is whether a connection has told of a change that nobody has begun to list."""
        self.pins = pins
        self._announced = announced
        self._lists: WeakKeyDictionary[LiveConnection, _Lists] = WeakKeyDictionary()

    def admit(self, spec: UpstreamSpec) -> None:
        """Raises `ToolError(QUARANTINED)` for a tool that may not be called as it is now."""
        self.pins.check("tool", spec.native_name, spec.pin)

    def _lists_of(self, connection: LiveConnection) -> _Lists:
        if (lists := self._lists.get(connection)) is None:
            lists = self._lists[connection] = _Lists()
        return lists

    @contextmanager
    def listing(self, connection: LiveConnection) -> Generator[None]:
        """Around reading the list of a connection, and pinning what is in it."""
        lists = self._lists_of(connection)
        lists.begun += 1
        try:
            yield
        finally:
            lists.ended += 1
            lists.end.set()
            lists.end = anyio.Event()

    async def settled(self, connection: LiveConnection, max_wait_s: float) -> None:
        """Return once what this connection offers is known, all changes it has announced so far included.

        Also where it cannot be listed: the call is then held against what was known. Raises `ToolError(UPSTREAM_DOWN)`
        where the list is still to come.
        """
        if self.pins.is_off:
            return
        lists = self._lists_of(connection)
        needed = max(1, lists.begun + (1 if self._announced(connection) else 0))
        if lists.ended >= needed:
            return
        with anyio.move_on_after(min(max_wait_s, MAX_WAIT_S)) as patience:
            while lists.ended < needed and not connection.closed.is_set():
                await lists.end.wait()
        if patience.cancelled_caught:
            raise ToolError(
                ErrorCode.UPSTREAM_DOWN,
                f"upstream {self.pins.config.name} has not listed yet what it offers now; the call did not run",
                "Call again a little later.",
            )


class GatedCache(Protocol):
    """What is known of the upstream's lists."""

    @property
    def must_be_listed(self) -> bool: ...

    def load_warm(self) -> None: ...

    async def settled(self, connection: LiveConnection, max_wait_s: float) -> None: ...

    def admit(self, kind: Kind, key: str) -> None: ...

    def templates_of(self, uri: str) -> tuple[str, ...]: ...


class ResourceGate:
    """The gate of one upstream."""

    def __init__(self, cache: GatedCache, is_listed: Callable[[LiveConnection], bool]) -> None:
        """`is_listed` says whether a connection is one whose lists are read."""
        self._cache = cache
        self._is_listed = is_listed

    async def admit(
        self, method: str, params: Mapping[str, Any], connection: LiveConnection, max_wait_s: float
    ) -> None:
        """Raises `ToolError(QUARANTINED)` for a request about what may not be used as it is now."""
        ref = params.get("ref") or params
        name, uri = ref.get("name"), ref.get("uri")
        is_prompt = method == "prompts/get" or ref.get("type") == "ref/prompt"
        self._cache.load_warm()
        # A read of a plain resource waits for no list.
        if not is_prompt and not self._cache.templates_of(str(uri)) and not self._cache.must_be_listed:
            return
        if self._is_listed(connection):
            await self._cache.settled(connection, max_wait_s)
        if is_prompt:
            self._cache.admit("prompts", str(name))
            return
        for template in self._cache.templates_of(str(uri)):
            self._cache.admit("templates", template)
