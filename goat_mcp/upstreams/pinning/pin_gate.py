"""Between a call and a definition that has changed: a call waits for the list that it needs, and is held against it.

A new process may offer something else than the last one, and a notice may say that the list has changed: a call that
comes after either waits until that list is read. A change that nobody announces is seen at the next list.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import anyio

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.upstreams.listing.proxy_tool import UpstreamSpec
from goat_mcp.upstreams.pinning.pins import UpstreamPins

if TYPE_CHECKING:  # loaded with the first connection
    from goat_mcp.upstreams.transports.connection import Connection


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
        self, pins: UpstreamPins, announced: Callable[[Connection], bool] = lambda one: one.tools_changed.is_set()
    ) -> None:
        """`announced` is whether a connection has told of a change that nobody has begun to list."""
        self.pins = pins
        self._announced = announced
        self._lists: WeakKeyDictionary[Connection, _Lists] = WeakKeyDictionary()
        self._own: WeakKeyDictionary[Connection, Mapping[str, str]] = WeakKeyDictionary()

    def admit(self, spec: UpstreamSpec, connection: Connection | None = None) -> None:
        """Raises `ToolError(QUARANTINED)` for a tool that may not be called, as this connection has it now."""
        of_connection = self._own.get(connection) if connection is not None and self._own else None
        own = "" if of_connection is None else of_connection.get(spec.native_name, "")
        self.pins.check("tool", spec.native_name, spec.pin, own)

    def note_own(self, connection: Connection, hashes: Mapping[str, str]) -> None:
        """What a connection lists that serves single clients, by name."""
        self._own[connection] = hashes

    def _lists_of(self, connection: Connection) -> _Lists:
        if (lists := self._lists.get(connection)) is None:
            lists = self._lists[connection] = _Lists()
        return lists

    @contextmanager
    def listing(self, connection: Connection) -> Generator[None]:
        """Around reading the list of a connection, and pinning what is in it."""
        lists = self._lists_of(connection)
        lists.begun += 1
        try:
            yield
        finally:
            lists.ended += 1
            lists.end.set()
            lists.end = anyio.Event()

    async def settled(self, connection: Connection, max_wait_s: float) -> None:
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
