"""The requests of a login: sent through our guarded client, and only to addresses that were checked (R-UP-9).

What they say, and what their answers mean, is the SDK's provider's business. The upstream names these addresses itself,
so they are not trusted. The origin the operator wrote may be anywhere; every other one must be public and https, except
that an upstream on this machine may have its authorization server on this machine, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, cast

import httpx2
from mcp.shared.auth import OAuthMetadata, ProtectedResourceMetadata
from pydantic import ValidationError
from pydantic_core import from_json

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.upstreams.oauth.login_contract import AuthServerDown, LoginRefused
from goat_mcp.web.http import HttpClient
from goat_mcp.web.http.addresses import why_not_public
from goat_mcp.web.http.client import WholeResponse
from goat_mcp.web.http.target import Target, parse_target

TIMEOUT_S = 10.0
_MAX_BYTES = 1024 * 1024
_MAX_REDIRECTS = 5


@dataclass(eq=False)
class ProviderRequests:
    """Those about one upstream. `hide` is told every secret that an answer brings."""

    destinations: Destinations
    http: HttpClient
    hide: Callable[..., None]

    async def send(self, request: httpx2.Request, what: str) -> httpx2.Response:
        """The answer to a request of the provider. A redirect is followed within its origin, if it is a read.

        Raises `LoginRefused` and `AuthServerDown`.
        """
        url = str(request.url)
        headers = {
            name: value
            for name, value in request.headers.items()
            if name not in ("host", "content-length", "connection")
        }
        for _ in range(_MAX_REDIRECTS + 1):
            target = self.destinations.checked(url, what)
            allowed = (target.authority,) if self.destinations.may_be_private(target) else ()
            try:
                response = await self.http.send(
                    request.method,
                    target.url,
                    headers={**headers, "accept": "application/json"},
                    content=request.content or None,
                    allow_hosts=allowed,
                    timeout_s=TIMEOUT_S,
                    max_bytes=_MAX_BYTES,
                )
            except ToolError as problem:
                if problem.code is ErrorCode.ADDRESS:
                    raise LoginRefused(f"{what} is refused: {problem.message}") from None
                raise AuthServerDown(problem.message) from None
            if response.truncated:
                raise LoginRefused(f"{target.shown} answered with more than {_MAX_BYTES} bytes")
            location = response.headers.get("location")
            if request.method != "GET" or location is None or not 300 <= response.status < 400:
                break
            try:
                there = target.joined(location)
            except ToolError as problem:
                raise LoginRefused(problem.message) from None
            if there.origin != target.origin:
                raise LoginRefused(f"{target.shown} redirects to another host, {there.origin}, which is not followed")
            url = there.url
        else:
            raise LoginRefused(f"{shown(request)} redirects without an end")
        self._hide_tokens(response)
        if request.method == "GET" and response.status == 200:
            _refuse_broken_metadata(response)
        return httpx2.Response(
            response.status,
            headers={name: response.headers.get(name, "") for name in ("content-type", "date")},
            content=response.body,
            request=request,
        )

    def _hide_tokens(self, response: WholeResponse) -> None:
        try:
            document: Any = from_json(response.body)
        except ValueError:
            return
        if isinstance(document, dict):
            members = cast("dict[str, Any]", document)
            for name in ("access_token", "refresh_token", "id_token", "client_secret", "registration_access_token"):
                if isinstance(members.get(name), str):
                    self.hide(members[name])


def _refuse_broken_metadata(response: WholeResponse) -> None:
    """Raises `LoginRefused` for metadata that breaks its own rules: the provider would go on without it, guessing.

    What is no metadata at all passes. Many servers answer every path with their start page.
    """
    try:
        document: Any = from_json(response.body)
    except ValueError:
        return
    if not isinstance(document, dict):
        return
    document = cast("dict[str, Any]", document)
    model = ProtectedResourceMetadata if "authorization_servers" in document else OAuthMetadata
    if model is OAuthMetadata and not {"authorization_endpoint", "token_endpoint", "issuer"} & set(document):
        return
    try:
        model.model_validate(document)
    except ValidationError as broken:
        first = broken.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise LoginRefused(f"what {response.url} says of its login cannot be used: {where}: {first['msg']}") from None


def shown(request: httpx2.Request) -> str:
    """Where a request goes, as people may see it."""
    return str(request.url).partition("?")[0][:200]


class Destinations:
    """The addresses one upstream's login may lead to."""

    def __init__(self, url: str, allow_hosts: Collection[str] = ()) -> None:
        self._upstream = _parsed(url, "its own address")
        self._allow_hosts = allow_hosts

    def refuse_plain_upstream(self) -> None:
        """Raises `LoginRefused` for an upstream that would have its tokens over plain http."""
        upstream = self._upstream
        if upstream.scheme == "http" and not (_is_loopback(upstream) or upstream.is_among(self._allow_hosts)):
            raise LoginRefused(
                f"a token is never sent to {upstream.origin} over plain http; use https, or name "
                f"{upstream.authority} in oauth.allow_hosts of its entry"
            )

    def checked(self, url: str, what: str) -> Target:
        """The address a URL leads to. Raises `LoginRefused` if it may not; `what` says whose URL it is."""
        target = _parsed(url, what)
        if target.origin == self._upstream.origin or target.is_among(self._allow_hosts):
            return target
        if _is_loopback(target) and _is_loopback(self._upstream):
            return target
        if target.scheme == "http":
            raise LoginRefused(
                f"{what} is refused: {target.shown} is plain http; the operator can name {target.authority} in "
                "oauth.allow_hosts of this upstream's entry"
            )
        return target

    def may_be_private(self, target: Target) -> bool:
        """Whether a private address is right for this one, once its name is resolved."""
        is_ours = target.origin == self._upstream.origin or target.is_among(self._allow_hosts)
        return is_ours or (_is_loopback(target) and _is_loopback(self._upstream))


def _parsed(url: str, what: str) -> Target:
    try:
        return parse_target(url)
    except ToolError as refused:
        raise LoginRefused(f"{what} is refused: {refused.message}") from None


def _is_loopback(target: Target) -> bool:
    return target.host == "localhost" or why_not_public(target.host) == "loopback"
