"""Asking the configured provider: one request, one retry, and what to say where it does not work.

No key leaves but in a request to the provider it is for: errors and results are cleared of it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import anyio
import anyio.to_thread

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.web.http import HttpClient
from goat_mcp.web.http.response import WholeResponse
from goat_mcp.web.search.configured import ConfiguredProvider
from goat_mcp.web.search.provider import Blocked, Found, Hit, NotUnderstood, SearchQuery
from goat_mcp.web.search.refusals import cannot_be_reached, not_understood, refusal, wants_a_person

MAX_ANSWER_BYTES = 2_000_000
MAX_HITS = 100
"""More than any provider gives at a time; what a flood holds beyond is not looked at."""
RETRY_AFTER_S = 1.0
"""How long to wait before the one retry where the provider does not say."""
_SHORTEST_REQUEST_S = 1.0


async def ask(http: HttpClient, provider: ConfiguredProvider, query: SearchQuery, timeout_s: float) -> Found:
    """What the provider found, within `timeout_s`.

    Raises `ToolError`: CONFIG names the setting to look at; RATE, NETWORK and TIMEOUT say what went wrong on the way.
    """
    name, max_chars = provider.wire.name, provider.wire.max_query_chars
    if len(query.text) > max_chars:
        raise ToolError(
            ErrorCode.INPUT,
            f"query: has {len(query.text)} characters; {name} takes at most {max_chars}",
            "Search for fewer words.",
        )
    try:
        with anyio.fail_after(timeout_s):
            answer = await _answer(http, provider, query, time.monotonic() + timeout_s)
            # A page made for it takes a second or two to read, in which other calls go on.
            found = await anyio.to_thread.run_sync(_read, provider, answer, abandon_on_cancel=True)
    except TimeoutError:
        raise ToolError(
            ErrorCode.TIMEOUT,
            f"{name} ({provider.address}) did not answer within {timeout_s:.0f} s",
            "Try once more; if it stays so, ask the user to name another web.search.provider.",
        ) from None
    hits = (Hit(*map(provider.without_key, (hit.title, hit.url, hit.snippet))) for hit in found.hits[:MAX_HITS])
    return Found(tuple(hits), provider.without_key(found.notice))


async def _answer(
    http: HttpClient, provider: ConfiguredProvider, query: SearchQuery, ends_at_s: float
) -> WholeResponse:
    """The first answer, or the second where the first is a 429 or 5xx and there is time for another try."""
    first = await _send(http, provider, query, ends_at_s)
    if first.status != 429 and first.status < 500:
        return first
    said_s = retry_after_s(first.headers)
    wait_s = RETRY_AFTER_S if said_s is None else said_s
    if time.monotonic() + wait_s + _SHORTEST_REQUEST_S > ends_at_s:
        return first
    await anyio.sleep(wait_s)
    return await _send(http, provider, query, ends_at_s)


async def _send(http: HttpClient, provider: ConfiguredProvider, query: SearchQuery, ends_at_s: float) -> WholeResponse:
    request = provider.wire.request(query, provider.key)
    try:
        return await http.send(
            request.method,
            provider.base_url + request.path,
            headers=request.headers,
            content=request.content,
            allow_hosts=provider.allow_hosts,
            # A second more: the end of the whole call, which `ask` knows a better error for, comes first.
            timeout_s=max(0.0, ends_at_s - time.monotonic()) + 1,
            max_bytes=MAX_ANSWER_BYTES,
        )
    except ToolError as failed:
        raise cannot_be_reached(provider, failed) from None


def _read(provider: ConfiguredProvider, answer: WholeResponse) -> Found:
    if not 200 <= answer.status < 300:
        raise refusal(provider, answer, retry_after_s(answer.headers))
    if answer.truncated:
        raise not_understood(provider, f"it is longer than {MAX_ANSWER_BYTES} bytes")
    try:
        return provider.wire.read(answer.body)
    except NotUnderstood as nonsense:
        raise not_understood(provider, str(nonsense)) from None
    except Blocked:
        raise wants_a_person(provider) from None


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """What the header Retry-After asks for: seconds, or a date. None where it says nothing that can be read."""
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError):
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max(0.0, (date - datetime.now(UTC)).total_seconds())
