"""A request to an upstream that wants a login: the client behind it is offered one, then it is sent again (AUT-3)."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from goat_mcp.core.context import ToolContext
from goat_mcp.upstreams.faults import LoginWanted

MAX_OFFERS = 2
"""One to get in, and one more where the request wants a right that the login has not."""

T = TypeVar("T")
OfferLogin = Callable[[ToolContext, LoginWanted], Awaitable[None]]
"""Returns once somebody has logged in; raises what it was given where this client is not asked, or `ToolError`."""


async def nobody_to_log_in(ctx: ToolContext, wanted: LoginWanted) -> None:
    """For an upstream that wants no logins of ours."""
    raise wanted


async def after_login(offer: OfferLogin, ctx: ToolContext, send: Callable[[ToolContext], Awaitable[T]]) -> T:
    """What `send` returns, which is given the context to wait with. Raises what it and `offer` raise."""
    offered: set[str] = set()
    while True:
        try:
            return await send(ctx)
        except LoginWanted as wanted:
            if wanted.scopes in offered or len(offered) == MAX_OFFERS:
                # A new login did not help; neither would another one.
                raise
            offered.add(wanted.scopes)
            await offer(ctx, wanted)
            if ctx.wants_progress:
                # Its client was told all along that somebody logs in: that time is not the request's.
                ctx = ctx.changed(started_at_s=time.monotonic(), client_waits_since_s=None)
