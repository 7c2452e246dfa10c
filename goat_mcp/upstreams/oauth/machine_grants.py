"""Logins without a person: client credentials, proved by a secret or a key, and the JWT bearer grant (RFC 7523).

The SDK's providers say what is sent. Each token is asked for anew; there is nothing to renew it with. A client is
known to one authorization server, so nothing is sent to any other than `issuer`.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Literal, cast
from urllib.parse import parse_qsl

import httpx2
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.client.auth.extensions.identity_assertion import IdentityAssertionOAuthProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken
from pydantic import ValidationError

from goat_mcp.state.secret_references import SecretReferences
from goat_mcp.upstreams.config.oauth_keys import OAuthOptions
from goat_mcp.upstreams.oauth.conversation import Granted, Memory, converse, error_code, secret_method
from goat_mcp.upstreams.oauth.identity_assertion import IdentityAssertion
from goat_mcp.upstreams.oauth.login_contract import AuthServerDown, CredentialsRefused
from goat_mcp.upstreams.oauth.provider_requests import ProviderRequests, shown
from goat_mcp.upstreams.oauth.signing_key import SigningKey

SKEW_SHOWN_S = 30.0
"""Clocks that differ by more are worth a word when a signed assertion was refused."""
ISSUED_BEFORE_S = 30
"""An assertion is dated back by so much: a server whose clock is behind would refuse one from its future."""
_REFUSALS = frozenset({400, 401, 403})

SecretMethod = Literal["client_secret_basic", "client_secret_post"]


class MachineGrants:
    """Of one upstream."""

    def __init__(
        self,
        url: str,
        options: OAuthOptions,
        requests: ProviderRequests,
        secrets: SecretReferences,
    ) -> None:
        self._url = url
        self._options = options
        self._requests = requests
        self._secrets = secrets
        self._assertion = IdentityAssertion(options, requests, secrets)

    async def token(self, challenge: str, scopes: str) -> Granted:
        """A new token. Raises `LoginRefused` and `AuthServerDown`."""
        options, memory, found = self._options, Memory(), _Found()

        async def send(request: httpx2.Request) -> httpx2.Response:
            answer = await self._requests.send(request, "an address of its login")
            if request.method == "POST":
                _check_token_answer(answer)
            else:
                found.note(answer)
            return answer

        def method() -> SecretMethod:
            supported = None if found.auth_server is None else found.auth_server.token_endpoint_auth_methods_supported
            return options.token_endpoint_auth_method or cast("SecretMethod", secret_method(supported))

        if options.grant == "jwt_bearer":
            provider = _AssertionGrant(
                self._url,
                memory,
                options.client_id,
                options.client_secret.get_secret_value(),
                options.issuer,
                self._assertion.read,
                scope=scopes or None,
                method=method,
            )
        elif options.private_key.get_secret_value():
            provider = PrivateKeyJWTOAuthProvider(
                self._url, memory, options.client_id, self._signer(found), issuer=options.issuer
            )
        else:
            provider = _SecretGrant(
                self._url,
                memory,
                options.client_id,
                options.client_secret.get_secret_value(),
                issuer=options.issuer,
                method=method,
            )
        tokens = await converse(provider, memory, self._url, challenge, scopes, send)
        # What is kept with the token holds no secret: that is in the entry.
        client = OAuthClientInformationFull(client_id=options.client_id, grant_types=[options.grant])
        return Granted(tokens, client, options.issuer, found.auth_server)

    def _signer(self, found: _Found) -> Callable[[str], Awaitable[str]]:
        key = SigningKey(self._options.private_key.get_secret_value())
        client_id = self._options.client_id

        async def sign(audience: str) -> str:
            supported = found.auth_server
            algorithm = key.algorithm_for(
                None if supported is None else supported.token_endpoint_auth_signing_alg_values_supported
            )
            issued = {"iat": int(time.time()) - ISSUED_BEFORE_S}
            parameters = SignedJWTParameters(
                issuer=client_id,
                subject=client_id,
                signing_key=key.pem,
                signing_algorithm=algorithm,
                additional_claims=issued,
            )
            assertion = await parameters.create_assertion_provider()(audience)
            self._secrets.hide(assertion)
            return assertion

        return sign


class _Found:
    """What the authorization server says of itself, once it was asked."""

    auth_server: OAuthMetadata | None = None

    def note(self, answer: httpx2.Response) -> None:
        with contextlib.suppress(ValidationError):
            self.auth_server = OAuthMetadata.model_validate_json(answer.content)


class _SecretGrant(ClientCredentialsOAuthProvider):
    """Sends its secret by the `method` that the server's metadata leads to, which is known once it was read."""

    def __init__(
        self,
        url: str,
        memory: Memory,
        client_id: str,
        client_secret: str,
        *,
        issuer: str,
        method: Callable[[], SecretMethod],
    ) -> None:
        super().__init__(url, memory, client_id, client_secret, issuer=issuer)
        self._method = method

    async def _perform_authorization(self) -> httpx2.Request:
        assert self.context.client_info is not None
        self.context.client_info.token_endpoint_auth_method = self._method()
        return await super()._perform_authorization()


class _AssertionGrant(IdentityAssertionOAuthProvider):
    """The same for the JWT bearer grant; also for a client without a secret, as workloads are (SEP-1933)."""

    def __init__(
        self,
        url: str,
        memory: Memory,
        client_id: str,
        client_secret: str,
        issuer: str,
        assertion: Callable[[str, str], Awaitable[str]],
        *,
        scope: str | None,
        method: Callable[[], SecretMethod],
    ) -> None:
        # The SDK wants a secret; what stands for none is taken out of the request again.
        super().__init__(url, memory, client_id, client_secret or "-", issuer, assertion, scope=scope)
        self._has_secret = bool(client_secret)
        self._method = method

    def _build_token_request(self, scope: str | None, assertion: str) -> httpx2.Request:
        self._client.token_endpoint_auth_method = self._method() if self._has_secret else "client_secret_post"
        request = super()._build_token_request(scope, assertion)
        if self._has_secret:
            return request
        form = {name: value for name, value in parse_qsl(request.content.decode()) if name != "client_secret"}
        return httpx2.Request("POST", request.url, data=form)


def _check_token_answer(answer: httpx2.Response) -> None:
    """Raises `LoginRefused` for a no, and `AuthServerDown` for what is neither a no nor a token."""
    where = shown(answer.request)
    if answer.status_code == 200:
        try:
            OAuthToken.model_validate_json(answer.content)
        except ValidationError:
            raise AuthServerDown(f"{where} answered with what is no bearer token") from None
        return
    text = f"{error_code(answer) or 'no error code'} (HTTP {answer.status_code})"
    if answer.status_code in _REFUSALS:
        raise CredentialsRefused(f"{where} refused goat-mcp: {text}{_skew(answer)}")
    raise AuthServerDown(f"{where} answered {text}")


def _skew(answer: httpx2.Response) -> str:
    """What is worth saying of the two clocks."""
    try:
        there = parsedate_to_datetime(answer.headers.get("date", ""))
    except ValueError:
        return ""
    ahead_s = (datetime.now(UTC) - there).total_seconds() if there.tzinfo is not None else 0.0
    if abs(ahead_s) < SKEW_SHOWN_S:
        return ""
    return f"; the clock of this machine is {abs(ahead_s):.0f} s {'ahead of' if ahead_s > 0 else 'behind'} the server's"
