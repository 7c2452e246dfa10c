"""From a host name to addresses that may be dialled: resolved once, every one checked (R-NET-2)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.web.http.addresses import why_not_public
from goat_mcp.web.http.domains import looks_like_a_number
from goat_mcp.web.http.target import Target, not_public

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a host, best first. Raises `OSError` where there are none."""


async def addresses_to_dial(target: Target, resolve: Resolve, *, may_be_private: bool) -> Sequence[str]:
    """Look the host up once. One address that is not public refuses all of them. Raises `ToolError`."""
    if ":" in target.host or looks_like_a_number(target.host):
        addresses: Sequence[str] = (target.host,)
    else:
        try:
            addresses = await resolve(target.host, target.port)
        except (OSError, UnicodeError) as problem:
            reason = getattr(problem, "strerror", None) or str(problem)
            raise _unknown_host(target, reason) from None
    if not addresses:
        raise _unknown_host(target, "it has no address")
    if not may_be_private:
        for address in addresses:
            kind = why_not_public(address)
            if kind is not None:
                raise not_public(target, address, kind)
    return addresses


def _unknown_host(target: Target, reason: str) -> ToolError:
    return ToolError(
        ErrorCode.NETWORK, f"host {target.host} cannot be resolved: {reason}", "Check the spelling of the host."
    )
