"""The requests of a login, as we send them: through our guarded client, to places that were checked.

What they say, and what their answers mean, is the SDK's provider's business.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import httpx2
from mcp.shared.auth import OAuthMetadata, ProtectedResourceMetadata
from pydantic import ValidationError
from pydantic_core import from_json

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.upstreams.oauth.destinations import Destinations
from goat_mcp.upstreams.oauth.login_problems import AuthServerDown, LoginRefused
from goat_mcp.web.http import HttpClient
from goat_mcp.web.http.client import WholeResponse

TIMEOUT_S = 10.0
_MAX_BYTES = 1024 * 1024
_MAX_REDIRECTS = 5


class ProviderRequests:
    """Those about one upstream. `hide` is told every secret that an answer brings."""

    def __init__(self, places: Destinations, http: HttpClient, hide: Callable[..., None]) -> None:
        self._places = places
        self._http = http
        self._hide = hide

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
            target = self._places.checked(url, what)
            allowed = (target.authority,) if self._places.may_be_private(target) else ()
            try:
                response = await self._http.send(
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
            headers={"content-type": response.headers.get("content-type", "")},
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
                    self._hide(members[name])


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
