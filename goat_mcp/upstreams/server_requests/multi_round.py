"""A request that the upstream may answer with questions: sent again with the answers until it is done (ERA-5)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

from goat_mcp.core.client_side import CAPABILITY_MISSING, URL_REQUIRED, ClientSide, RootsOf
from goat_mcp.core.errors import ErrorCode, ToolError, UpstreamError

MAX_ROUNDS = 10

Send = Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]
"""Sends the request with these members beside its own; the raw result. Raises `UpstreamError`."""


async def in_rounds(
    upstream: str,
    send: Send,
    client: ClientSide | None,
    *,
    allow: Collection[str],
    roots: RootsOf,
) -> dict[str, Any]:
    """The result that is left when nothing more is asked. `allow` and `roots` are as in `Callers`.

    Raises what `send` raises; -32021 for a client of the stateless era that cannot answer, `ToolError` for others.
    """
    given: Mapping[str, Any] = client.given if client is not None else {}
    outcome = await _outcome(send, {"inputResponses": given} if given else {})
    if not isinstance(outcome, UpstreamError) and outcome.get("resultType") != "input_required":
        return outcome

    from goat_mcp.upstreams.server_requests.request_handlers import RoundAnswers

    answers = RoundAnswers(upstream, allow, roots, client)
    for _ in range(MAX_ROUNDS):
        if isinstance(outcome, UpstreamError):
            await answers.to_error(outcome)
            outcome = await _outcome(send, {})
        else:
            outcome = await _outcome(send, await answers.to_result(outcome))
        if not isinstance(outcome, UpstreamError) and outcome.get("resultType") != "input_required":
            return outcome
    raise ToolError(
        ErrorCode.UPSTREAM,
        f"upstream {upstream} asked {MAX_ROUNDS} times without coming to an end",
        "Use another tool.",
    )


async def _outcome(send: Send, more: Mapping[str, Any]) -> dict[str, Any] | UpstreamError:
    try:
        return await send(more)
    except UpstreamError as refused:
        if refused.code not in (URL_REQUIRED, CAPABILITY_MISSING):
            raise
        return refused
