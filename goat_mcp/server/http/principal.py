"""Who an HTTP request is from: the holder of its token, whatever path, profile or session it names."""

from __future__ import annotations

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from starlette.types import Scope


def principal_of(scope: Scope, *, needs_token: bool) -> str | None:
    """None without a valid token. On a server that needs none, all clients are one principal."""
    user = scope.get("user")
    if isinstance(user, AuthenticatedUser):
        return user.access_token.subject or user.access_token.client_id
    return None if needs_token else ""
