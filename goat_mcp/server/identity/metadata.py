"""The document that says who gives out tokens for this server, at its well-known paths (RFC 9728)."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from mcp.shared.auth import ProtectedResourceMetadata
from pydantic import AnyHttpUrl
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from goat_mcp.settings.identity import IdentitySettings

WELL_KNOWN = "/.well-known/oauth-protected-resource"
_MAX_AGE_S = 3600


@dataclass(frozen=True)
class ResourceMetadata:
    """ASGI application of public, constant content. No other origin's page is granted anything (R-HTTP-2)."""

    resource: str
    identity: IdentitySettings

    @property
    def url(self) -> str:
        """Where a client finds it: the path of the resource comes behind the well-known one (RFC 9728, 3.1)."""
        parts = urlsplit(self.resource)
        return f"{parts.scheme}://{parts.netloc}{WELL_KNOWN}{parts.path.rstrip('/')}"

    @property
    def paths(self) -> frozenset[str]:
        """Clients of older revisions look at the root."""
        return frozenset({WELL_KNOWN, f"{WELL_KNOWN}/mcp", urlsplit(self.url).path})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        document = ProtectedResourceMetadata(
            resource=AnyHttpUrl(self.resource),
            authorization_servers=[AnyHttpUrl(self.identity.issuer)],
            scopes_supported=list(self.identity.scopes) or None,
            resource_name="goat-mcp",
        )
        # The issuer is compared character by character, so it is not what a URL type makes of it.
        content = document.model_copy(
            update={"resource": self.resource, "authorization_servers": [self.identity.issuer]}
        ).model_dump_json(exclude_none=True, warnings=False)
        headers = {"cache-control": f"public, max-age={_MAX_AGE_S}"}
        await Response(content, 200, headers, "application/json")(scope, receive, send)
