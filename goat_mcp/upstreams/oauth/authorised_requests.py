"""A request of any kind to an HTTP upstream, with the token of its login, and with another one if that is refused.

Only ever our own token for that upstream: what a client authorised itself with to us never gets here (AUT-1).
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

import httpx2

from goat_mcp.upstreams.oauth.login_problems import LoginNeeded
from goat_mcp.upstreams.oauth.logins import LoginDoor

_SCOPE = re.compile(r'(?:^|[\s,])scope="([\x20\x21\x23-\x5b\x5d-\x7e]{1,1000})"')
_INSUFFICIENT = re.compile(r'(?:^|[\s,])error="?insufficient_scope\b')


async def send_authorised(
    login: LoginDoor, request: httpx2.Request, send: Callable[[httpx2.Request], Awaitable[httpx2.Response]]
) -> httpx2.Response:
    """The answer. Raises `LoginNeeded` and `AuthServerDown`: then the request had no effect."""
    token = await login.token()
    response = await send(_bearing(request, token))
    if response.status_code == 401:
        challenge = await _challenge_of(response)
        token = await login.after_refusal(token, challenge)
        response = await send(_bearing(request, token))
        if response.status_code == 401:
            await response.aclose()
            raise LoginNeeded("it refuses the token of its login")
    if response.status_code == 403 and _INSUFFICIENT.search(response.headers.get("www-authenticate", "")):
        challenge = await _challenge_of(response)
        scopes = _SCOPE.search(challenge)
        token = await login.with_more_scopes(token, scopes[1] if scopes else "", challenge)
        response = await send(_bearing(request, token))
    return response


def _bearing(request: httpx2.Request, token: str | None) -> httpx2.Request:
    if token is not None:
        request.headers["authorization"] = f"Bearer {token}"
    return request


async def _challenge_of(response: httpx2.Response) -> str:
    await response.aclose()
    return response.headers.get("www-authenticate", "")
