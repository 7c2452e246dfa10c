"""How a request without a good token is answered: 401 and what the client needs to get one (RFC 6750, RFC 9728)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from starlette.authentication import AuthenticationError
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

RETRY_AFTER_S = 5


class RefusedToken(AuthenticationError):
    """A token that does not count, and why. `reason` is a text of ours: it never holds any of the token."""

    def __init__(self, reason: str, *, status: int = 401, error: str = "invalid_token") -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status
        self.error = error


class UncheckedToken(RefusedToken):
    """The provider's keys are not at hand, so nobody knows yet. A new token would not help: the client waits."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, status=503, error="")


@dataclass(frozen=True)
class Challenge:
    """What a client needs to know: where the metadata is, and which scopes it asks the provider for."""

    metadata_url: str
    scopes: Sequence[str]

    def refused(self, connection: HTTPConnection, problem: AuthenticationError) -> Response:
        """The answer to a token that was refused."""
        if not isinstance(problem, RefusedToken):
            return self.response(401, str(problem), error="invalid_token")
        return self.response(problem.status, problem.reason, error=problem.error)

    def response(self, status: int, reason: str, *, error: str = "") -> Response:
        headers = {"connection": "close"}
        if status == 503:
            headers["retry-after"] = str(RETRY_AFTER_S)
        elif status == 401 or error:
            headers["www-authenticate"] = self._header(error, reason)
        return Response(f"{reason}\n", status, headers, "text/plain")

    def _header(self, error: str, reason: str) -> str:
        # Without a token there is no error to name (RFC 6750, 3.1).
        parts = {"error": error, "error_description": reason} if error else {}
        parts["resource_metadata"] = self.metadata_url
        if self.scopes:
            parts["scope"] = " ".join(self.scopes)
        return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in parts.items())


@dataclass
class RequireToken:
    """ASGI middleware, right behind the reading of the token: nothing else is done for who has shown none."""

    app: ASGIApp
    challenge: Challenge

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or isinstance(scope.get("user"), AuthenticatedUser):
            await self.app(scope, receive, send)
            return
        await self.challenge.response(401, "a bearer token is needed")(scope, receive, send)
