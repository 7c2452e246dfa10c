"""The conversation with an authorization server: the SDK's provider says what to send, and we send it.

The provider does discovery, registration, PKCE, resource indicators and the checks of who answers. It is driven here
request by request, not plugged into the client of the link: there it would hold every call of the upstream up until
the one before it is answered. How each request is sent is in `provider_requests`.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Mapping
from functools import partial

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.auth.utils import issuers_match, union_scopes
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl
from pydantic_core import to_json

from goat_mcp.core.errors import ToolError
from goat_mcp.state.secret_references import SecretReferences
from goat_mcp.upstreams.config.oauth_keys import OAuthOptions
from goat_mcp.upstreams.envelope import STATELESS_VERSION, stamp_request
from goat_mcp.upstreams.oauth.conversation import (
    Granted,
    Memory,
    challenge_field,
    converse,
    error_code,
    probe_of,
    secret_method,
)
from goat_mcp.upstreams.oauth.login_contract import AuthServerDown, LoginPrompt, LoginRefused, RenewalRefused
from goat_mcp.upstreams.oauth.login_store import LoginFacts, LoginSecrets, StoredLogin
from goat_mcp.upstreams.oauth.provider_requests import TIMEOUT_S, Destinations, ProviderRequests, shown
from goat_mcp.web.http import HttpClient

_MAX_LIFE_S = 10 * 365 * 24 * 3600
_DEAD_GRANTS = frozenset({"invalid_grant", "invalid_client", "unauthorized_client"})


class Flow:
    """Conversations about one upstream. `secrets` receives each secret as soon as there is one."""

    def __init__(
        self,
        url: str,
        options: OAuthOptions,
        http: HttpClient,
        secrets: SecretReferences,
        *,
        name: str,
        principal: str,
        workspace: str = "",
    ) -> None:
        # Its lines quote answers of the server, in which tokens may be.
        logging.getLogger("mcp.client.auth").setLevel(logging.CRITICAL + 1)
        self._url = url
        self._options = options
        self._http = http
        self._secrets = secrets
        self._name = name
        self._principal = principal
        self._workspace = workspace
        self._destinations = Destinations(url, options.allow_hosts)
        self._requests = ProviderRequests(self._destinations, http, secrets.hide)

    async def log_in(
        self, person: LoginPrompt | None, *, challenge: str = "", previous: StoredLogin | None = None, scopes: str = ""
    ) -> StoredLogin:
        """A new login, made by `person`; without one only by a grant that needs none.

        `challenge` is the upstream's `WWW-Authenticate`, `scopes` are asked for beside the usual ones. Raises
        `LoginRefused` and `AuthServerDown`.
        """
        self._destinations.refuse_plain_upstream()
        wanted = self._wanted_scopes(challenge, previous, scopes)
        if not self._options.needs_a_person:
            from goat_mcp.upstreams.oauth.machine_grants import MachineGrants

            grants = MachineGrants(self._url, self._options, self._requests, self._secrets)
            return self._login(await grants.token(challenge, wanted), previous)
        memory = Memory(client=self._known_client(person, previous, wanted))
        provider = self._provider(memory, person)
        send = partial(self._requests.send, what="an address of its login")
        tokens = await converse(provider, memory, self._url, challenge, wanted, send)
        return self._login(_granted(provider, tokens), previous)

    async def renew(self, login: StoredLogin) -> StoredLogin:
        """The login with new tokens. Raises `RenewalRefused` and `AuthServerDown`."""
        secrets, facts = login.secrets, login.facts
        memory = Memory(
            OAuthToken(
                access_token=secrets.access_token, refresh_token=secrets.refresh_token, scope=facts.scope or None
            ),
            self._client_of(login),
        )
        provider = self._provider(memory, None)
        context = provider.context
        # Remembered, not asked for again: the refresh token goes to whom it came from, whatever the upstream says now.
        context.oauth_metadata = OAuthMetadata.model_validate(facts.auth_server) if facts.auth_server else None
        if facts.protected_resource:
            context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(facts.protected_resource)
        context.auth_server_url = facts.issuer or None
        context.token_expiry_time = 1.0
        probe = probe_of(self._url)
        async with contextlib.aclosing(provider.async_auth_flow(probe)) as flow:
            outgoing = await anext(flow)
            try:
                answer = await self._requests.send(outgoing, "the token address")
            except LoginRefused as refused:
                raise RenewalRefused(str(refused)) from None
            if answer.status_code != 200:
                raise _refusal(answer, str(outgoing.url))
            await flow.asend(answer)
        if not memory.is_new or memory.tokens is None:
            raise AuthServerDown(f"{shown(outgoing)} answered with what is no token")
        return self._login(_granted(provider, memory.tokens), login)

    async def asked_for(self, headers: Mapping[str, str], token: str | None = None) -> tuple[int, str]:
        """What the upstream answers to a request with `token`, or without any: a status, and its challenge.

        Raises `LoginRefused` and `AuthServerDown`.
        """
        target = self._destinations.checked(self._url, "its address")
        body = {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": stamp_request({}, stateless=True)}
        bearer = {} if token is None else {"authorization": f"Bearer {token}"}
        stamps = {"mcp-protocol-version": STATELESS_VERSION, "mcp-method": "server/discover"}
        kinds = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        try:
            async with self._http.stream(
                "POST",
                target.url,
                headers={**headers, **kinds, **stamps, **bearer},
                content=to_json(body),
                allow_hosts=(target.authority,),
                timeout_s=TIMEOUT_S,
            ) as response:
                return response.status, response.headers.get("www-authenticate", "")
        except ToolError as problem:
            raise AuthServerDown(problem.message) from None

    async def revoke(self, login: StoredLogin) -> bool:
        """Tell the authorization server that nobody will use this login again. False where it cannot be told."""
        facts, secrets = login.facts, login.secrets
        url = facts.auth_server.get("revocation_endpoint")
        if not isinstance(url, str):
            return False
        context = self._provider(Memory(), None).context
        client = context.client_info = self._client_of(login)
        if not self._options.needs_a_person and (secret := self._options.client_secret.get_secret_value()):
            # It is not kept with the tokens: it is in the entry.
            client.client_secret = secret
            client.token_endpoint_auth_method = self._options.token_endpoint_auth_method or secret_method(
                facts.auth_server.get("token_endpoint_auth_methods_supported")
            )
        form = {"token": secrets.refresh_token or secrets.access_token, "client_id": facts.client_id}
        try:
            form, headers = context.prepare_token_auth(form, {})
            request = httpx2.Request("POST", url, data=form, headers=headers)
            answer = await self._requests.send(request, "the address to log out")
        except (LoginRefused, AuthServerDown, OAuthFlowError):
            return False
        return answer.status_code == 200

    def _provider(self, memory: Memory, person: LoginPrompt | None) -> OAuthClientProvider:
        options = self._options

        async def visit(url: str) -> None:
            await self._send_away(provider, _required(person), url)

        async def came_back() -> AuthorizationCodeResult:
            result = await _required(person).came_back()
            self._secrets.hide(result.code)
            return result

        metadata = OAuthClientMetadata(
            redirect_uris=None if person is None else [AnyUrl(person.redirect_uri)],
            client_name="goat-mcp",
            software_id="goat-mcp",
            scope=" ".join(options.scopes) or None,
        )
        provider = OAuthClientProvider(
            self._url, metadata, memory, visit, came_back, client_metadata_url=options.client_metadata_url or None
        )
        return provider

    async def _send_away(self, provider: OAuthClientProvider, person: LoginPrompt, url: str) -> None:
        """Have the person open the address, if it is one to be opened."""
        context = provider.context
        metadata = context.oauth_metadata
        issuer = str(metadata.issuer) if metadata is not None else ""
        if self._options.issuer and not issuers_match(issuer, self._options.issuer):
            raise LoginRefused(
                f"its authorization server is {issuer or 'unknown'}, and oauth.issuer of its entry names "
                f"{self._options.issuer}"
            )
        client = context.client_info
        if client is not None and client.client_secret and client.token_endpoint_auth_method is None:
            supported = metadata.token_endpoint_auth_methods_supported if metadata is not None else None
            client.token_endpoint_auth_method = secret_method(supported)
        target = self._destinations.checked(url, "the address of its login page")
        await person.visit(target.url)

    def _wanted_scopes(self, challenge: str, previous: StoredLogin | None, scopes: str) -> str:
        """What to ask for, in one text; empty for whatever the upstream's metadata says."""
        wanted = " ".join(self._options.scopes) or challenge_field(challenge, "scope")
        if scopes:
            granted = previous.facts.scope if previous is not None else ""
            wanted = union_scopes(union_scopes(granted, wanted), scopes) or ""
        return wanted

    def _known_client(
        self, person: LoginPrompt | None, previous: StoredLogin | None, wanted: str
    ) -> OAuthClientInformationFull | None:
        options = self._options
        redirects = None if person is None else [AnyUrl(person.redirect_uri)]
        if options.client_id:
            return OAuthClientInformationFull(
                client_id=options.client_id,
                client_secret=options.client_secret.get_secret_value() or None,
                token_endpoint_auth_method=options.token_endpoint_auth_method,
                redirect_uris=redirects,
            )
        if previous is None or person is None or previous.facts.redirect_uri != person.redirect_uri:
            # Many servers take the redirect address they were told, and no other port.
            return None
        if options.client_metadata_url and previous.facts.auth_server.get("client_id_metadata_document_supported"):
            # The user has a client id of their own now, which comes before a registration of ours.
            return None
        client = self._client_of(previous)
        # One that was registered for some scopes gets no others.
        is_wide_enough = not client.scope or set(wanted.split()) <= set(client.scope.split())
        return client if is_wide_enough else None

    def _client_of(self, login: StoredLogin) -> OAuthClientInformationFull:
        return OAuthClientInformationFull.model_validate(
            {**login.secrets.registration, "client_secret": login.secrets.client_secret or None}
        )

    def _login(self, granted: Granted, previous: StoredLogin | None) -> StoredLogin:
        tokens, client = granted.tokens, granted.client
        now_s = time.time()
        life_s = None if tokens.expires_in is None else min(max(tokens.expires_in, 0), _MAX_LIFE_S)
        metadata, resource = granted.auth_server, granted.protected_resource
        redirects = client.redirect_uris or []
        generation = previous.facts.generation + 1 if previous is not None else 1
        registration = client.model_dump(mode="json", exclude_none=True)
        secret = registration.pop("client_secret", "")
        self._secrets.hide(tokens.access_token, tokens.refresh_token or "", secret)
        facts = LoginFacts(
            resource=self._url,
            issuer=granted.issuer,
            client_id=client.client_id,
            principal=self._principal,
            workspace=self._workspace,
            server=self._name,
            is_registered=not self._options.client_id,
            scope=tokens.scope or "",
            expires_at_s=None if life_s is None else now_s + life_s,
            obtained_at_s=now_s,
            generation=generation,
            auth_server=metadata.model_dump(mode="json", exclude_none=True) if metadata is not None else {},
            protected_resource=resource.model_dump(mode="json", exclude_none=True) if resource is not None else {},
            redirect_uri=str(redirects[0]) if redirects else "",
            can_renew=bool(tokens.refresh_token) or not self._options.needs_a_person,
        )
        secrets = LoginSecrets(
            generation=generation,
            access_token=tokens.access_token,
            refresh_token=tokens.refresh_token or "",
            client_secret=secret,
            registration=registration,
        )
        return StoredLogin(facts=facts, secrets=secrets)


def _granted(provider: OAuthClientProvider, tokens: OAuthToken) -> Granted:
    context = provider.context
    assert context.client_info is not None
    metadata = context.oauth_metadata
    issuer = str(metadata.issuer) if metadata is not None else (context.auth_server_url or "")
    return Granted(tokens, context.client_info, issuer, metadata, context.protected_resource_metadata)


def _required(person: LoginPrompt | None) -> LoginPrompt:
    if person is None:
        raise LoginRefused("nobody is there to log in")
    return person


def _refusal(answer: httpx2.Response, url: str) -> RenewalRefused | AuthServerDown:
    """What a token address said other than yes."""
    error = error_code(answer)
    text = f"{error or 'no'} (HTTP {answer.status_code})"
    if error in _DEAD_GRANTS and answer.status_code in (400, 401):
        return RenewalRefused(f"the authorization server answered {text}")
    return AuthServerDown(f"{url.partition('?')[0][:200]} answered {text}")
