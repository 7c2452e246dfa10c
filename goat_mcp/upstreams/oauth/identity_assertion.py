"""The assertion of the JWT bearer grant: a token that says who asks, from somewhere outside goat-mcp.

It is read again for each token, because it is short-lived and somebody else renews it. With an identity provider it is
the user's ID token, and what the provider gives for it (an ID-JAG, RFC 8693, SEP-990) is good for one MCP server;
without one it is the assertion itself, as workloads have it.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime

import anyio.to_thread
import httpx2
import jwt
from mcp.client.auth.oauth2 import OAuthContext
from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls,
    create_oauth_metadata_request,
    handle_auth_metadata_response,
    validate_metadata_issuer,
)
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthMetadata
from pydantic import BaseModel, ValidationError

from goat_mcp.core.substitution import Unresolved
from goat_mcp.state.secret_references import SecretReferences
from goat_mcp.upstreams.config.oauth_keys import IdentityProvider, OAuthOptions
from goat_mcp.upstreams.oauth.conversation import Memory, error_code, secret_method
from goat_mcp.upstreams.oauth.login_contract import AuthServerDown, CredentialsRefused, LoginRefused
from goat_mcp.upstreams.oauth.provider_requests import ProviderRequests, shown

WHAT = "an address of the identity provider"
LEEWAY_S = 60.0
"""By so much may our clock be wrong before we believe that an assertion has ended."""
_GRANT = "urn:ietf:params:oauth:grant-type:token-exchange"
_ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"
_ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"


class _Exchanged(BaseModel):
    """A successful answer of RFC 8693. It is an ID-JAG in `access_token`, and nothing that gives access."""

    access_token: str
    issued_token_type: str


class IdentityAssertion:
    """Of one upstream."""

    def __init__(
        self,
        options: OAuthOptions,
        requests: ProviderRequests,
        secrets: SecretReferences,
    ) -> None:
        self._options = options
        self._requests = requests
        self._secrets = secrets

    async def read(self, audience: str, resource: str) -> str:
        """An assertion for the authorization server `audience`, about the MCP server `resource`.

        Raises `LoginRefused` and `AuthServerDown`.
        """
        try:
            reference = self._options.assertion.get_secret_value()
            assertion = await anyio.to_thread.run_sync(self._secrets.secret, reference)
        except Unresolved as why:
            raise LoginRefused(f"oauth.assertion cannot be read: {why}") from None
        _refuse_ended(assertion)
        provider = self._options.identity_provider
        return assertion if provider is None else await self._exchanged(provider, assertion, audience, resource)

    async def _exchanged(self, provider: IdentityProvider, id_token: str, audience: str, resource: str) -> str:
        metadata = await self._metadata_of(provider)
        secret = provider.client_secret.get_secret_value()
        method = secret_method(metadata.token_endpoint_auth_methods_supported) if secret else "none"
        context = OAuthContext(provider.issuer, OAuthClientMetadata(redirect_uris=None), Memory(), None, None)
        context.client_info = OAuthClientInformationFull(
            client_id=provider.client_id, client_secret=secret or None, token_endpoint_auth_method=method
        )
        form = {
            "grant_type": _GRANT,
            "requested_token_type": _ID_JAG,
            "audience": audience,
            "resource": resource,
            "subject_token": id_token,
            "subject_token_type": _ID_TOKEN,
            "client_id": provider.client_id,
        }
        if self._options.scopes:
            form["scope"] = " ".join(self._options.scopes)
        form, headers = context.prepare_token_auth(form, {})
        request = httpx2.Request("POST", str(metadata.token_endpoint), data=form, headers=headers)
        answer = await self._requests.send(request, WHAT)
        if answer.status_code != 200:
            text = f"{error_code(answer) or 'no error code'} (HTTP {answer.status_code})"
            if answer.status_code in (400, 401, 403):
                raise CredentialsRefused(f"the identity provider refused to exchange oauth.assertion: {text}")
            raise AuthServerDown(f"the identity provider at {shown(request)} answered {text}")
        try:
            exchanged = _Exchanged.model_validate_json(answer.content)
        except ValidationError:
            raise AuthServerDown(f"the identity provider at {shown(request)} answered with no token") from None
        if exchanged.issued_token_type != _ID_JAG:
            raise LoginRefused(
                "the identity provider gave another kind of token than the one for an MCP server (ID-JAG)"
            )
        return exchanged.access_token

    async def _metadata_of(self, provider: IdentityProvider) -> OAuthMetadata:
        for url in build_oauth_authorization_server_metadata_discovery_urls(provider.issuer, provider.issuer):
            answer = await self._requests.send(create_oauth_metadata_request(url), WHAT)
            if answer.status_code >= 500 or answer.status_code == 429:
                raise AuthServerDown(f"the identity provider at {url} answered HTTP {answer.status_code}")
            _, metadata = await handle_auth_metadata_response(answer)
            if metadata is not None:
                validate_metadata_issuer(metadata, provider.issuer)
                return metadata
        raise LoginRefused(f"there is no identity provider at {provider.issuer[:200]}: it has no metadata")


def _refuse_ended(assertion: str) -> None:
    """Raises `LoginRefused` for a token that says itself that it has ended: no server would take it."""
    try:
        ends_s = float(jwt.decode(assertion, options={"verify_signature": False}).get("exp", "inf"))
        ended = datetime.fromtimestamp(ends_s, UTC) if ends_s < time.time() - LEEWAY_S else None
    except (jwt.PyJWTError, ValueError, TypeError, OverflowError):
        return  # Whether it is one is not ours to say.
    if ended is not None:
        raise LoginRefused(
            f"oauth.assertion ended at {ended:%Y-%m-%d %H:%M:%S} UTC; it is read again once whoever writes it has "
            "renewed it"
        )
