"""A request that is sent again: with answers to what its upstream asks (ERA-5), or after a login (AUT-3)."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, TypeVar

from goat_mcp.core.client_side import CAPABILITY_MISSING, URL_REQUIRED, ClientSide, RootsOf
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError, UpstreamError
from goat_mcp.upstreams.faults import LoginRequired

MAX_ROUNDS = 10
MAX_OFFERS = 2
"""Logins for one request: one to get in, and one more if the request needs a right that the login lacks."""

T = TypeVar("T")
OfferLogin = Callable[[ToolContext, LoginRequired], Awaitable[None]]
"""Returns once somebody has logged in; raises what it was given if this client is not asked, or `ToolError`."""


async def in_rounds(
    upstream: str,
    send: Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]],
    client: ClientSide | None,
    *,
    allow: Collection[str],
    roots: RootsOf,
) -> dict[str, Any]:
    """The result once nothing more is asked. `allow` and `roots` are as in `Callers`.

    `send` sends the request with these members beside its own and returns the raw result; it raises `UpstreamError`.
    Raises what `send` raises; -32021 for a client of the stateless era that cannot answer, `ToolError` for others.
    """
    more: Mapping[str, Any] = {"inputResponses": client.given} if client is not None and client.given else {}
    answers = None
    for number in range(1 + MAX_ROUNDS):
        refusal = None
        outcome: dict[str, Any] = {}
        try:
            outcome = await send(more)
        except UpstreamError as refused:
            if refused.code not in (URL_REQUIRED, CAPABILITY_MISSING):
                raise
            refusal = refused
        if refusal is None and outcome.get("resultType") != "input_required":
            return outcome
        if number == MAX_ROUNDS:
            break
        if answers is None:
            # Loaded by the first upstream that asks.
            from goat_mcp.upstreams.server_requests.request_handlers import RoundAnswers

            answers = RoundAnswers(upstream, allow, roots, client)
        if refusal is not None:
            await answers.to_error(refusal)
            more = {}
        else:
            more = await answers.to_result(outcome)
    raise ToolError(
        ErrorCode.UPSTREAM,
        f"upstream {upstream} asked {MAX_ROUNDS} times without coming to an end",
        "Use another tool.",
    )


async def with_login(offer: OfferLogin, ctx: ToolContext, send: Callable[[ToolContext], Awaitable[T]]) -> T:
    """What `send` returns. It gets the context to wait with. Raises what it and `offer` raise."""
    offered: set[str] = set()
    while True:
        try:
            return await send(ctx)
        except LoginRequired as wanted:
            if wanted.scopes in offered or len(offered) == MAX_OFFERS:
                # A new login did not help; neither would another one.
                raise
            offered.add(wanted.scopes)
            await offer(ctx, wanted)
            if ctx.wants_progress:
                # Its client was told all along that somebody logs in: that time is not the request's.
                ctx = ctx.changed(started_at_s=time.monotonic(), client_waits_since_s=None)
