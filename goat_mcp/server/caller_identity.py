"""Who is behind a request, by its transport and its token: the principal, the session, the rights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from mcp_types import ClientCapabilities, InitializeRequestParams
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from goat_mcp.catalog.own_lists import OwnLists
from goat_mcp.core.rights import ANONYMOUS, LOCAL, NO_LIMITS, Rights
from goat_mcp.server.client_channel import Context

if TYPE_CHECKING:  # there are tokens over HTTP only
    from mcp.server.auth.provider import AccessToken

Transport = Literal["stdio", "http"]
APPS_EXTENSION = "io.modelcontextprotocol/ui"
TASKS_EXTENSION = "io.modelcontextprotocol/tasks"
APP_MIME_TYPE = "text/html;profile=mcp-app"
PATH_PROFILE = "goat_mcp.profile"
"""The key of a request's ASGI scope that holds the profile of its path."""
_SCOPE_PREFIX = "profile:"
ADMINISTRATOR_SCOPE = "administrator"
"""What marks a token of somebody who sees and decides for everybody. No scope of a provider's token is taken over."""
APPROVER_SCOPE = "approver"
"""What marks a token that may decide at all."""


def token_scope(profile: str) -> str:
    """What marks a token of this profile."""
    return f"{_SCOPE_PREFIX}{profile}"


class ClientProfiles:
    """Which profiles narrow what one request may do: those of its token, its client and its path, all of them (PRF-1).

    A client's name is its own word and a path its own choice: neither takes anything back of what the token leaves.
    `by_client`: the profile of a client that gives this name in its `clientInfo`."""

    def __init__(self, by_client: Mapping[str, str]) -> None:
        self._by_client = by_client

    def rights(self, *, token_scopes: list[str], client: str, request: Any) -> Rights:
        """The one that is written last says what names and schemas look like: the path, before the client."""
        of_token = [scope.removeprefix(_SCOPE_PREFIX) for scope in token_scopes if scope.startswith(_SCOPE_PREFIX)]
        of_client = self._by_client.get(client, "")
        of_path = request.scope.get(PATH_PROFILE, "") if request is not None else ""
        if not of_token and not of_client and not of_path:
            return NO_LIMITS
        profiles = tuple(dict.fromkeys(profile for profile in (*of_token, of_client, of_path) if profile))
        return Rights(profiles=profiles)


class Caller(NamedTuple):
    """Who makes one request. `client_name` is with its version, in its own words."""

    principal: str
    session_key: str
    rights: Rights
    client_name: str


class CallerIdentity:
    """Over one kind of transport. The token is that of the request at work."""

    def __init__(self, transport: Transport, profiles: ClientProfiles, own_lists: OwnLists | None = None) -> None:
        self._transport = transport
        self._profiles = profiles
        self._own_lists = own_lists or OwnLists()
        self._last: tuple[InitializeRequestParams | None, ClientCapabilities | None, Caller, int] | None = None

    def of(self, ctx: Context) -> Caller:
        """The caller. Over stdio it is the same as long as the client says the same of itself."""
        if self._transport != "stdio":
            return self._found(ctx)
        params, capabilities = ctx.session.client_params, ctx.session.client_capabilities
        last, generation = self._last, self._own_lists.generation
        if last is None or last[0] is not params or last[1] is not capabilities or last[3] != generation:
            last = self._last = (params, capabilities, self._found(ctx), generation)
        return last[2]

    def _found(self, ctx: Context) -> Caller:
        principal = self.principal()
        session_key, rights = self.session_key(ctx, principal), self.rights(ctx)
        if session_key in self._own_lists.sessions:
            rights = replace(rights, own_lists=session_key)
        return Caller(principal, session_key, rights, client_and_version(ctx))

    def rights(self, ctx: Context) -> Rights:
        token = self._token()
        scopes = token.scopes if token is not None else []
        rights = self._profiles.rights(token_scopes=scopes, client=_client_name(ctx), request=ctx.request)
        if ADMINISTRATOR_SCOPE in scopes:
            rights = replace(rights, is_administrator=True)
        return replace(rights, shows_apps=True) if shows_apps(ctx.session.client_capabilities) else rights

    def principal(self) -> str:
        if self._transport == "stdio":
            return LOCAL
        token = self._token()
        return token.subject or token.client_id if token is not None else ANONYMOUS

    def session_key(self, ctx: Context, principal: str) -> str:
        """Design D6: the process on stdio, principal and session id on handshake HTTP, principal and client after it.

        Over HTTP no two principals have a key in common, whatever they call themselves: what is stored by session is
        stored by principal as well (R-HTTP-3b).
        """
        if self._transport == "stdio":
            return "stdio"
        owner = principal.replace("%", "%25").replace(":", "%3A")
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS or ctx.request is None:
            # That era has no sessions: an id in its header is the sender's choice, and may be another client's.
            return f"principal:{owner}:{_client_name(ctx)}"
        # The SDK has looked it up, and that this credential opened it.
        return f"session:{owner}:{ctx.request.headers.get('mcp-session-id', '')}"

    def _token(self) -> AccessToken | None:
        if self._transport == "stdio":
            return None
        from mcp.server.auth.middleware.auth_context import get_access_token

        return get_access_token()


def client_and_version(ctx: Context) -> str:
    """What the client calls itself, like `claude-code 2.0.1`; empty if it does not say."""
    params = ctx.session.client_params
    return f"{params.client_info.name} {params.client_info.version}".strip() if params is not None else ""


def shows_apps(capabilities: ClientCapabilities | None) -> bool:
    """Whether a client renders MCP Apps, by its own word (SEP-1865)."""
    declared = ((capabilities.extensions if capabilities is not None else None) or {}).get(APPS_EXTENSION)
    types: Any = declared.get("mimeTypes") if declared is not None else None
    return isinstance(types, list) and APP_MIME_TYPE in types


def _client_name(ctx: Context) -> str:
    params = ctx.session.client_params
    return params.client_info.name if params is not None else ""
