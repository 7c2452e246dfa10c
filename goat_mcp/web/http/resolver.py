"""From a host name to addresses that may be dialled: resolved once, every one checked (R-NET-2)."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.web.http.addresses import why_not_public
from goat_mcp.web.http.domains import looks_like_a_number
from goat_mcp.web.http.target import Target, not_public

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a host, best first. Raises `OSError` if there are none."""


async def addresses_to_dial(target: Target, resolve: Resolve, *, may_be_private: bool) -> Sequence[str]:
    """Look the host up once. One address that is not public refuses all of them. Raises `ToolError`."""
    if ":" in target.host or looks_like_a_number(target.host):
        addresses: Sequence[str] = (target.host,)
    else:
        try:
            addresses = await resolve(target.host, target.port)
        except (OSError, UnicodeError) as problem:
            reason = getattr(problem, "strerror", None) or str(problem)
            raise _unresolved(target, reason) from None
    if not addresses:
        raise _unresolved(target, "it has no address")
    if not may_be_private:
        for address in addresses:
            kind = why_not_public(address)
            if kind is not None:
                raise not_public(target, address, kind)
    return addresses


def _unresolved(target: Target, reason: str) -> ToolError:
    return ToolError(
        ErrorCode.NETWORK, f"host {target.host} cannot be resolved: {reason}", "Check the spelling of the host."
    )


MAX_LOOKUPS = 128
"""Hosts that are looked up at once; each may keep a thread for half a minute."""


class SystemResolver:
    """What the system's resolver says, asked in threads of our own. One per client.

    A look-up cannot be ended, so one that hangs keeps its thread until the system gives up. In the event loop's
    threads it would keep every other look-up of the process waiting, and the exit as well.
    """

    def __init__(self) -> None:
        self._under_way: dict[str, Future[Sequence[str]]] = {}

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """Who asks for a host that is being looked up waits for the same answer. Raises `ToolError(BUSY)`."""
        lookup = self._under_way.get(host)
        if lookup is None:
            if len(self._under_way) >= MAX_LOOKUPS:
                raise _busy(host, f"{MAX_LOOKUPS} others are still being looked up")
            lookup = self._start(host)
        return await asyncio.wrap_future(lookup)

    def _start(self, host: str) -> Future[Sequence[str]]:
        lookup: Future[Sequence[str]] = Future()
        lookup.set_running_or_notify_cancel()  # so that a caller who leaves does not end it for the others
        self._under_way[host] = lookup

        def look_up() -> None:
            try:
                addresses = _addresses(host)
            except BaseException as problem:
                self._under_way.pop(host, None)
                lookup.set_exception(problem)
            else:
                self._under_way.pop(host, None)
                lookup.set_result(addresses)

        try:
            # A daemon, so that no look-up holds up the exit.
            threading.Thread(target=look_up, name="name look-up", daemon=True).start()
        except RuntimeError as problem:
            del self._under_way[host]
            raise _busy(host, str(problem)) from None
        return lookup


def _addresses(host: str) -> Sequence[str]:
    found = socket.getaddrinfo(host.encode("ascii"), None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def _busy(host: str, problem: str) -> ToolError:
    return ToolError(ErrorCode.BUSY, f"host {host} cannot be resolved now: {problem}", "Try again in some seconds.")
