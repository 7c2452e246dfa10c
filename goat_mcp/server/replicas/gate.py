"""Where requests from other replicas come in: each is checked whole before anything of it is believed.

They are requests of clients that another replica has recognized, or of the gateway there. A bearer token is neither
sent nor needed; the guard's checks of Host and Origin were made where the client came in.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
from mcp.server.auth.provider import AccessToken, TokenVerifier
from starlette.types import ASGIApp, Receive, Scope, Send

from goat_mcp.core.token_bucket import TokenBucket
from goat_mcp.server.http.body import BODY_DEADLINE_S, replayed
from goat_mcp.server.http.guard import Refusal
from goat_mcp.web.hops.client import HOP_HEADER, HOP_PREFIX, HOP_REFUSED_HEADER
from goat_mcp.web.hops.signature import Hop, HopChecks, HopKeys, HopRefused, sha256
from goat_mcp.web.hops.spans import arriving

HOP = "goat_mcp.hop"
"""The key of a request's ASGI scope that holds its `Hop`, if it came from another replica."""
_REFUSED = Refusal(403, "only replicas of this server may ask here", ((HOP_REFUSED_HEADER.encode(), b"1"),))
_HEADER = HOP_HEADER.encode()


class HopPrincipals(TokenVerifier):
    """Knows clients by their token, and those that another replica has recognized by one that never leaves here."""

    def __init__(self, by_token: TokenVerifier) -> None:
        self._by_token = by_token
        self._admitted: dict[str, AccessToken] = {}

    async def verify_token(self, token: str) -> AccessToken | None:
        return self._admitted.get(token) or await self._by_token.verify_token(token)

    @contextmanager
    def admit(self, principal: Mapping[str, Any]) -> Generator[str]:
        """A token for one request of this principal. Raises `ValidationError`."""
        token = secrets.token_urlsafe(32)
        self._admitted[token] = AccessToken.model_validate({**principal, "token": token})
        try:
            yield token
        finally:
            del self._admitted[token]


@dataclass
class HopGate:
    """ASGI middleware, in front of the guard. `apps` serve what comes, by the beginning of the path."""

    app: ASGIApp
    apps: Mapping[str, ASGIApp]
    keys: HopKeys
    checks: HopChecks
    max_bytes: int
    warn: Callable[[str], object]
    principals: HopPrincipals | None = field(default=None)
    """None on a server that needs no token."""
    warnings: TokenBucket = field(default_factory=lambda: TokenBucket(per_s=0.1, at_once=10))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(f"{HOP_PREFIX}/"):
            await self.app(scope, receive, send)
            return
        try:
            hop = self._opened(scope)
            body = await self._body(receive)
            if sha256(body) != hop.body_sha256:
                raise HopRefused("with another body")
            app = next((app for start, app in self.apps.items() if hop.path.startswith(start)), None)
            if app is None:
                raise HopRefused(f"for {hop.path[:80]!r}, which is not served here")
        except HopRefused as why:
            if self.warnings.take():  # anybody may send what is refused
                self.warn(str(why))
            await _REFUSED.answer(send)
            return
        headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in hop.headers.items()]
        inner: Scope = {**scope, "path": hop.path, "raw_path": hop.path.encode(), "headers": headers, HOP: hop}
        inner["query_string"] = b""  # which is not signed
        with arriving(hop.source, hop.headers):
            if hop.principal is None or self.principals is None:
                await app(inner, replayed(body, receive), send)
                return
            with self.principals.admit(hop.principal) as token:
                headers.append((b"authorization", f"Bearer {token}".encode()))
                await app(inner, replayed(body, receive), send)

    def _opened(self, scope: Scope) -> Hop:
        sealed = [value for name, value in scope["headers"] if name == _HEADER]
        if len(sealed) != 1:
            raise HopRefused("not signed")
        hop = self.keys.open(sealed[0].decode("latin-1"))
        self.checks.check(hop, scope["method"], scope["path"].removeprefix(HOP_PREFIX))
        return hop

    async def _body(self, receive: Receive) -> bytes:
        body = bytearray()
        with anyio.move_on_after(BODY_DEADLINE_S):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    raise HopRefused("broken off")
                body += message.get("body", b"")
                if len(body) > self.max_bytes:
                    raise HopRefused("too large")
                if not message.get("more_body", False):
                    return bytes(body)
        raise HopRefused("too slow")
