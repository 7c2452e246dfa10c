"""Asking the configured provider: one request, one retry, and the error if it fails.

No key leaves except in a request to its provider: errors and results are cleared of it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, cast

import anyio
import anyio.to_thread

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.documents.visible_text import drop_hidden
from goat_mcp.web.http import HttpClient
from goat_mcp.web.http.client import WholeResponse
from goat_mcp.web.search.provider import (
    ChallengedByProvider,
    ProviderAnswer,
    SearchHit,
    SearchQuery,
    UnexpectedFormat,
    read_object,
)
from goat_mcp.web.search.providers import ConfiguredProvider

_MAX_SAID_CHARS = 200


def unreachable_error(provider: ConfiguredProvider, failed: ToolError) -> ToolError:
    return ToolError(
        failed.code,
        provider.without_key(f"{provider.wire.name} ({provider.address}) cannot be asked: {failed.message}"),
        "Ask the user to check web.search.base_url and the network, or to name another web.search.provider.",
    )


def format_error(provider: ConfiguredProvider, why: str) -> ToolError:
    return ToolError(
        ErrorCode.NETWORK,
        f"{provider.wire.name} ({provider.address}) gave an answer that is not in its format: {why}",
        f"Ask the user whether web.search.base_url leads to {provider.wire.name}, or to name another "
        "web.search.provider.",
    )


def challenge_error(provider: ConfiguredProvider) -> ToolError:
    return ToolError(
        ErrorCode.RATE,
        f"{provider.wire.name} takes these searches for a robot's and asks for a person to confirm them",
        "Wait some minutes before the next search, or ask the user to name a web.search.provider with a key.",
    )


def status_error(provider: ConfiguredProvider, answer: WholeResponse, retry_after_s: float | None) -> ToolError:
    """The error for a status other than 2xx."""
    wire, status = provider.wire, answer.status
    said = provider.without_key(_provider_message(answer.body))
    about = f"status {status}{f': {said}' if said else ''}"
    if wire.refuses_key(status, answer.body):
        return ToolError(
            ErrorCode.CONFIG,
            f"{wire.name} refuses the key from {provider.key_source} ({about})",
            f"Ask the user to put a valid key into {provider.key_source}, and whether web.search.provider is right.",
        )
    if status in wire.advice:
        return ToolError(ErrorCode.CONFIG, f"{wire.name} refuses to search ({about})", wire.advice[status])
    if status == 429:
        wait = "some minutes" if retry_after_s is None else f"{retry_after_s:.0f} s"
        return ToolError(
            ErrorCode.RATE,
            f"{wire.name} takes no more searches for now ({about})",
            f"Wait {wait} before the next search, or ask the user to name another web.search.provider.",
        )
    if 300 <= status < 400 or status in (404, 405):
        target = drop_hidden(" ".join(answer.headers.get("location", "").split()))[:_MAX_SAID_CHARS]
        leads = f" and leads to {provider.without_key(target)}" if target else ""
        return ToolError(
            ErrorCode.CONFIG,
            f"{provider.address} is not where {wire.name} answers ({about}{leads})",
            f"Ask the user to set web.search.base_url to the address of {wire.name} itself.",
        )
    if status >= 500:
        return ToolError(
            ErrorCode.NETWORK,
            f"{wire.name} ({provider.address}) has trouble of its own ({about})",
            "Search again later, or ask the user to name another web.search.provider.",
        )
    return ToolError(
        ErrorCode.NETWORK, f"{wire.name} refuses this search ({about})", "Search for something else, in fewer words."
    )


def _provider_message(body: bytes) -> str:
    """The provider's own words on one line, wherever its kind of error has them; empty if it has none."""
    try:
        value: Any = read_object(body)
    except UnexpectedFormat:
        return ""
    for _ in range(3):
        if isinstance(value, dict):
            given = cast("dict[str, Any]", value)
            value = next((given[name] for name in ("detail", "error", "message") if given.get(name)), None)
    return drop_hidden(" ".join(value.split()))[:_MAX_SAID_CHARS] if isinstance(value, str) else ""


MAX_ANSWER_BYTES = 2_000_000
MAX_HITS = 100
"""More than any provider gives at a time; what a flood holds beyond is not looked at."""
RETRY_AFTER_S = 1.0
"""How long to wait before the one retry if the provider does not say."""
_SHORTEST_REQUEST_S = 1.0


async def ask(http: HttpClient, provider: ConfiguredProvider, query: SearchQuery, timeout_s: float) -> ProviderAnswer:
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
            found = await anyio.to_thread.run_sync(_read_answer, provider, answer, abandon_on_cancel=True)
    except TimeoutError:
        raise ToolError(
            ErrorCode.TIMEOUT,
            f"{name} ({provider.address}) did not answer within {timeout_s:.0f} s",
            "Try once more; if it stays so, ask the user to name another web.search.provider.",
        ) from None
    hits = (SearchHit(*map(provider.without_key, (hit.title, hit.url, hit.snippet))) for hit in found.hits[:MAX_HITS])
    return ProviderAnswer(tuple(hits), provider.without_key(found.notice))


async def _answer(
    http: HttpClient, provider: ConfiguredProvider, query: SearchQuery, ends_at_s: float
) -> WholeResponse:
    """The first answer, or the second if the first is a 429 or 5xx and there is time for another try."""
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
        raise unreachable_error(provider, failed) from None


def _read_answer(provider: ConfiguredProvider, answer: WholeResponse) -> ProviderAnswer:
    if not 200 <= answer.status < 300:
        raise status_error(provider, answer, retry_after_s(answer.headers))
    if answer.truncated:
        raise format_error(provider, f"it is longer than {MAX_ANSWER_BYTES} bytes")
    try:
        return provider.wire.read(answer.body)
    except UnexpectedFormat as nonsense:
        raise format_error(provider, str(nonsense)) from None
    except ChallengedByProvider:
        raise challenge_error(provider) from None


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """What the header Retry-After asks for: seconds, or a date. None if it says nothing that can be read."""
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
