"""http-fetch: a request and its answer as data, by WebFetch's rules about addresses. Pages as Markdown are WebFetch's.

Source: tools.md, section 3; security.md, R-NET-1 to R-NET-8.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.manifests.handler_api import Handler, HandlerContext, Host
from goat_mcp.web.http.client import WholeResponse
from goat_mcp.web.http.target import Target, parse_target, permitted_target
from goat_mcp.web.pages.charset import decode_page
from goat_mcp.web.pages.fetched_page import Page

TIMEOUT_MS = 20_000
MAX_BYTES = 1_000_000
MAX_REDIRECTS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_KEEP_METHOD = frozenset({307, 308})
_NOT_THE_CALLERS = frozenset({"accept-encoding", "cookie", "cookie2"})
_OF_A_BODY = frozenset({"content-type", "content-encoding", "content-language"})
_REPLACEMENT = "\ufffd"


def build_handlers(host: Host) -> Mapping[str, Handler]:
    """The handlers of `get` and `post`."""

    async def get(ctx: HandlerContext, input: Mapping[str, Any]) -> Any:
        first = _Request("GET", _target(host, input), dict(input.get("headers", {})), None)
        return await _fetch(host, ctx, input, first)

    async def post(ctx: HandlerContext, input: Mapping[str, Any]) -> Any:
        headers: dict[str, str] = dict(input.get("headers", {}))
        content, kind = _content(input.get("body", ""))
        if content and not any(name.lower() == "content-type" for name in headers):
            headers["content-type"] = kind
        first = _Request("POST", _target(host, input), headers, content)
        return await _fetch(host, ctx, input, first)

    return {"get": get, "post": post}


class _Request(NamedTuple):
    method: str
    target: Target
    headers: dict[str, str]
    content: bytes | None

    def redirected(self, target: Target, status: int) -> _Request:
        """The request that a redirect asks for: after most of them one without a body (RFC 9110, 15.4)."""
        if status in _KEEP_METHOD or self.method == "GET":
            return self._replace(target=target)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _OF_A_BODY}
        return _Request("GET", target, headers, None)


def _target(host: Host, input: Mapping[str, Any]) -> Target:
    return permitted_target(parse_target(input["url"]), host.allow_hosts)


def _content(body: Any) -> tuple[bytes, str]:
    if isinstance(body, str):
        return body.encode(), "text/plain; charset=utf-8"
    return json.dumps(body, ensure_ascii=False).encode(), "application/json"


async def _fetch(host: Host, ctx: HandlerContext, input: Mapping[str, Any], first: _Request) -> dict[str, Any]:
    _check_headers(first.headers)
    limit_s = min(input.get("timeoutMs", TIMEOUT_MS) / 1000, ctx.call.wait_left_s())
    ends_at_s = time.monotonic() + limit_s
    request = first
    for _ in range(MAX_REDIRECTS + 1):
        answer = await host.http.send(
            request.method,
            request.target.url,
            headers=request.headers,
            content=request.content,
            allow_hosts=host.allow_hosts,
            timeout_s=max(0.0, ends_at_s - time.monotonic()),
            max_bytes=input.get("maxBytes", MAX_BYTES),
        )
        location = answer.headers.get("location", "")
        if answer.status not in _REDIRECTS or not location:
            return _shown(answer)
        # Checked before it is told: what leads to a private address or a file is refused, not passed on.
        following = permitted_target(request.target.joined(location), host.allow_hosts)
        if following.origin != request.target.origin:
            return {**_shown(answer), "redirect": following.url}
        request = request.redirected(following, answer.status)
    raise ToolError(
        ErrorCode.NETWORK, f"{first.target.shown} redirects more than {MAX_REDIRECTS} times", "Ask for something else."
    )


def _check_headers(headers: Mapping[str, str]) -> None:
    """Those that the client does not refuse itself (see `http_client.request_headers`)."""
    for name in headers:
        if name.lower() in _NOT_THE_CALLERS:
            raise ToolError(
                ErrorCode.INPUT,
                f"the header {name} is not for a caller to set",
                "Leave it out: no cookies are sent, and compression is seen to.",
            )


def _shown(answer: WholeResponse) -> dict[str, Any]:
    page = Page(answer.url, answer.url, answer.status, answer.headers.get("content-type", ""), answer.body)
    shown: dict[str, Any] = {"status": answer.status, "headers": dict(answer.headers)}
    if page.is_binary:
        shown |= {"body": base64.b64encode(answer.body).decode("ascii"), "encoding": "base64"}
    else:
        text = decode_page(answer.body, page.content_type)
        # A character that the cut went through is none.
        shown["body"] = text.removesuffix(_REPLACEMENT) if answer.truncated else text
    return {**shown, "truncated": answer.truncated, "url": answer.url}
