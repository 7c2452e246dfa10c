"""The HTTP endpoint as an OAuth 2.1 resource server: what `serve --http` gains by `identity.issuer`."""

from __future__ import annotations

from collections.abc import Callable, Collection

from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend
from mcp.server.auth.provider import AccessToken, TokenVerifier
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware

from goat_mcp.server.identity.challenge import Challenge, RequireToken
from goat_mcp.server.identity.jwt_tokens import JwtTokens
from goat_mcp.server.identity.metadata import ResourceMetadata
from goat_mcp.server.identity.provider_keys import ProviderKeys
from goat_mcp.settings.identity import IdentitySettings
from goat_mcp.state.database import Warn
from goat_mcp.web.http import HttpClient


class EitherToken(TokenVerifier):
    """A token of our own, or one of the provider."""

    def __init__(self, ours: TokenVerifier, providers: JwtTokens) -> None:
        self._ours = ours
        self._providers = providers

    async def verify_token(self, token: str) -> AccessToken:
        """Raises `RefusedToken`."""
        return await self._ours.verify_token(token) or await self._providers.verify_token(token)


class ResourceServer:
    """`resource` is the URL that clients know `/mcp` by. `profiles` are those that there are now."""

    def __init__(
        self,
        identity: IdentitySettings,
        resource: str,
        http: HttpClient,
        profiles: Callable[[], Collection[str]],
        warn: Warn,
    ) -> None:
        self.metadata = ResourceMetadata(resource, identity)
        self.challenge = Challenge(self.metadata.url, identity.scopes)
        audience = identity.audience or (resource, f"{resource.rstrip('/')}/")
        self.tokens = JwtTokens(identity, ProviderKeys(identity, http, warn), audience, profiles)

    def middleware(self, ours: TokenVerifier) -> list[Middleware]:
        """Reads the token and lets nobody through without one. `ours` knows those of the server itself."""
        # The SDK's parts, with an answer of our own: its 401 names no scopes, and knows no provider that is down.
        backend = BearerAuthBackend(EitherToken(ours, self.tokens))
        return [
            Middleware(AuthenticationMiddleware, backend=backend, on_error=self.challenge.refused),
            Middleware(AuthContextMiddleware),
            Middleware(RequireToken, challenge=self.challenge),
        ]
