"""Requests to a messenger's Web API: its token stays out of every message, and it is waited for where it says so.

Which requests there are, and what their answers mean, is known to each messenger's tool.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, cast

import anyio

from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.web.http import HttpClient
from goat_mcp.web.http.http_status_text import http_status_text
from goat_mcp.web.http.response import WholeResponse
from goat_mcp.web.http.target import parse_target
from goat_mcp.web.messaging.account import Account

MAX_JSON_BYTES = 5_000_000
_REQUEST_S = 20.0
_LEAST_S = 2.0
"""What has to be left of a call's time after a wait, for the request itself."""
_REDIRECTS = range(300, 400)


class WebApi:
    """One account's requests within one call, which may take as long as `ctx` has left."""

    def __init__(self, http: HttpClient, account: Account, ctx: ToolContext) -> None:
        self._http = http
        self._account = account
        self._ctx = ctx

    async def post(self, what: str, url: str, content: bytes, headers: Mapping[str, str]) -> Mapping[str, Any]:
        """The JSON object that is answered, whatever the status. `what` names the method in messages.

        Raises `ToolError`: RATE, NETWORK, ADDRESS.
        """
        return self.as_json(what, await self._send("POST", what, url, content, headers, MAX_JSON_BYTES))

    async def get(self, what: str, url: str, headers: Mapping[str, str], max_bytes: int) -> WholeResponse:
        """An answer as it is, but for 429. Raises `ToolError`: RATE, NETWORK, ADDRESS."""
        return await self._send("GET", what, url, None, headers, max_bytes)

    def as_json(self, what: str, answer: WholeResponse) -> Mapping[str, Any]:
        """Its body as an object; the token, wherever a server repeats it, is taken out."""
        try:
            value: Any = json.loads(self._account.without_token(answer.body.decode()))
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            kind = "a redirect" if answer.status in _REDIRECTS else "what is no JSON object"
            status = http_status_text(answer.status)
            raise ToolError(
                ErrorCode.NETWORK,
                f"{self._account.service.name} answered {what} with {kind} ({status})",
                "Try again later. If it stays, tell the user: baseUrl may lead to another server.",
            )
        return cast("Mapping[str, Any]", value)

    async def _send(
        self, method: str, what: str, url: str, content: bytes | None, headers: Mapping[str, str], max_bytes: int
    ) -> WholeResponse:
        while True:
            answer = await self._once(method, what, url, content, headers, max_bytes)
            if answer.status != HTTPStatus.TOO_MANY_REQUESTS:
                return answer
            wait_s = _retry_after_s(answer)
            if wait_s + _LEAST_S > self._ctx.wait_left_s():
                raise ToolError(
                    ErrorCode.RATE,
                    f"{self._account.service.name} allows no {what} for another {wait_s} s",
                    f"Call again in {wait_s} s.",
                    facts={"retry_after_s": wait_s},
                )
            await anyio.sleep(wait_s)

    async def _once(
        self, method: str, what: str, url: str, content: bytes | None, headers: Mapping[str, str], max_bytes: int
    ) -> WholeResponse:
        account = self._account
        try:
            return await self._http.send(
                method,
                url,
                headers=headers,
                content=content,
                allow_hosts=account.allow_hosts,
                timeout_s=min(_REQUEST_S, self._ctx.wait_left_s()),
                max_bytes=max_bytes,
            )
        except ToolError as failed:
            # It names the URL, and the token may be a part of that, perhaps of its end only, where it was cut.
            place = parse_target(url)
            told = failed.message.replace(place.shown, f"{place.origin} ({what})")
            again = "Try again." if method == "GET" else "Look before trying again: it may have been done all the same."
            suggestion = again if failed.code is ErrorCode.NETWORK else account.without_token(failed.suggestion)
            raise ToolError(failed.code, account.without_token(told), suggestion, facts=failed.facts) from None


def _retry_after_s(answer: WholeResponse) -> int:
    """Whole seconds: Telegram says so in the body, others in the header (RFC 9110, 10.2.3)."""
    try:
        body: Any = json.loads(answer.body)
        said = body["parameters"]["retry_after"]
    except (ValueError, LookupError, TypeError, RecursionError):
        said = answer.headers.get("retry-after", "")
    try:
        return max(1, min(int(float(said) + 0.999), 86_400))
    except (ValueError, TypeError, OverflowError):
        return 1  # nobody said how long: that is a date, or nothing
