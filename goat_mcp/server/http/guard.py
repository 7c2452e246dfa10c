"""What every HTTP request passes before any session exists: path, Host, Origin and type.

R-HTTP-2, R-HTTP-5. The token is checked right behind it, by the SDK. It answers with a status and
one plain line, and keeps nothing of what it refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from starlette.types import ASGIApp, Receive, Scope, Send

from goat_mcp.server.caller_identity import PATH_PROFILE

MCP_PATH = "/mcp"
PAGE_PATH = "/ui"
APPROVALS_PATH = "/approvals"


def is_approvals(path: str) -> bool:
    return path == APPROVALS_PATH or path.startswith(f"{APPROVALS_PATH}/")


def is_page(path: str) -> bool:
    return path == PAGE_PATH or path.startswith(f"{PAGE_PATH}/")


@dataclass(frozen=True)
class Refusal:
    """A status and the line that explains it."""

    status: int
    reason: str
    headers: tuple[tuple[bytes, bytes], ...] = ()

    async def answer(self, send: Send) -> None:
        body = self.reason.encode() + b"\n"
        headers: list[Any] = [
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
            *self.headers,
        ]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


@dataclass
class HttpGuard:
    """ASGI middleware, the outermost one."""

    app: ASGIApp
    allowed_hosts: frozenset[str]
    profiles: Callable[[], Collection[str]] = tuple[str, ...]
    """Those that a path may name now: `/mcp/NAME` is `/mcp` with this profile (PRF-1)."""

    public_hosts: frozenset[str] = frozenset()
    """Names that a load balancer has: it may speak TLS with clients, so their origin may be `https`."""

    public: Mapping[str, ASGIApp] = field(default_factory=dict[str, ASGIApp])
    """By path: documents that a client needs before it has a token. They are read with GET."""

    serves_approvals: bool = False
    """Whether people may decide at and below `/approvals`, behind the token."""

    page: ASGIApp | None = None
    """The web page of the owner, at and below `/ui`. It has a guard of its own, as strict as this one."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if self.page is not None and is_page(scope["path"]):
            await self.page(scope, receive, send)
            return
        if (refusal := self.refusal(scope)) is not None:
            await refusal.answer(send)
            return
        if (document := self.public.get(scope["path"])) is not None:
            await document(scope, receive, send)
            return
        await self.pass_on(scope, receive, send)

    async def pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request for the protocol's paths that was checked."""
        if (profile := self._profile(scope)) is not None:
            scope = {**scope, "path": MCP_PATH, "raw_path": MCP_PATH.encode(), PATH_PROFILE: profile}
        await self.app(scope, receive, send)

    def refusal(self, scope: Scope) -> Refusal | None:
        """Why the request may not go on; None lets it pass."""
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        hosts = [value.decode("latin-1").lower() for name, value in headers if name == b"host"]
        origins = [value.decode("latin-1").lower() for name, value in headers if name == b"origin"]
        if len(hosts) != 1 or hosts[0] not in self.allowed_hosts | self.public_hosts:
            return Refusal(421, "this Host is not served here")
        if origins and (len(origins) > 1 or origins[0] not in self._allowed_origins()):
            return Refusal(403, "this Origin may not call")
        if scope["path"] in self.public:
            return None if scope["method"] == "GET" else Refusal(405, "method not allowed", ((b"allow", b"GET"),))
        is_served = scope["path"] == MCP_PATH or (self.serves_approvals and is_approvals(scope["path"]))
        if not is_served and self._profile(scope) is None:
            return Refusal(404, "not found")
        method = scope["method"]
        if method not in ("GET", "POST", "DELETE"):
            return Refusal(405, "method not allowed", ((b"allow", b"GET, POST, DELETE"),))
        types = [value for name, value in headers if name == b"content-type"]
        if method == "POST" and (len(types) != 1 or types[0].split(b";")[0].strip().lower() != b"application/json"):
            return Refusal(415, "send application/json")
        return None

    def _profile(self, scope: Scope) -> str | None:
        """The profile that the path names; None where it names none of ours."""
        parent, _, name = scope["path"].rpartition("/")
        return name if parent == MCP_PATH and name in self.profiles() else None

    def _allowed_origins(self) -> frozenset[str]:
        own = {f"http://{host}" for host in self.allowed_hosts}
        return frozenset(own | {f"{scheme}://{host}" for scheme in ("http", "https") for host in self.public_hosts})


def principal_of(scope: Scope, *, needs_token: bool) -> str | None:
    """Who an HTTP request is from: the holder of its token, whatever path, profile or session it names.

    None without a valid token. On a server that needs none, all clients are one principal.
    """
    user = scope.get("user")
    if isinstance(user, AuthenticatedUser):
        return user.access_token.subject or user.access_token.client_id
    return None if needs_token else ""
