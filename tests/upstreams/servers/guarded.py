"""An MCP server that wants a login, and its authorization server on another port: the SDK's own parts, both.

`guarded.py AUTH_PORT MCP_PORT LOG CONTROL`: what happens is written to LOG, one JSON line each; CONTROL is read again
for each request: `life_s` of access tokens, `grace_s` they are accepted longer, `refuse_all` of them, `refresh_error`
to answer with, `refresh_takes_s` before and `answer_takes_s` after the tokens are made, `handshake_only`.
Refresh tokens rotate, and one that is used twice ends all that came of its login. Whoever asks is let in.
"""

from __future__ import annotations

import gc

if __name__ == "__main__":
    # Importing the SDK takes a tenth longer with it, and tests start this hundreds of times.
    gc.disable()

import json
import secrets
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.routes import create_auth_routes
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.server.lowlevel import Server
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl, AnyUrl
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

warnings.simplefilter("ignore")
AUTH_PORT, MCP_PORT = int(sys.argv[1]), int(sys.argv[2])
LOG, CONTROL = Path(sys.argv[3]), Path(sys.argv[4])
ISSUER = f"http://127.0.0.1:{AUTH_PORT}/"  # as the SDK writes it
RESOURCE = f"http://127.0.0.1:{MCP_PORT}/mcp"


def log(event: str, **facts: Any) -> None:
    with LOG.open("a") as file:
        file.write(json.dumps({"event": event, **facts}) + "\n")


def control() -> dict[str, Any]:
    return json.loads(CONTROL.read_text()) if CONTROL.exists() else {}


class AnyPort(OAuthClientInformationFull):
    """A client that the server has always known: it may come back to any port of its machine (RFC 8252)."""

    def validate_redirect_uri(self, redirect_uri: AnyUrl | None) -> AnyUrl:
        assert redirect_uri is not None
        assert redirect_uri.host == "127.0.0.1"
        return redirect_uri


class Provider:
    """All in memory. `family` names what came of one login."""

    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.refresh: dict[str, RefreshToken] = {}
        self.used: set[str] = set()
        self.family: dict[str, str] = {}
        self.ended: set[str] = set()

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        if client_id == "static-client":
            return AnyPort(
                client_id=client_id,
                client_secret="canary-static-client-secret",
                redirect_uris=None,
                token_endpoint_auth_method="client_secret_basic",
                scope="read files:write",
            )
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        log("register", redirects=[str(uri) for uri in client_info.redirect_uris or []])
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        log("authorize", scopes=params.scopes, resource=params.resource, pkce=bool(params.code_challenge))
        code = AuthorizationCode(
            code=f"canary-code-{secrets.token_urlsafe(24)}",
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(self, client: Any, authorization_code: str) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client: Any, authorization_code: AuthorizationCode) -> OAuthToken:
        del self.codes[authorization_code.code]
        log("login", scopes=authorization_code.scopes)
        family = secrets.token_hex(4)
        return self._issue(client.client_id, authorization_code.scopes, authorization_code.resource, family)

    async def load_refresh_token(self, client: Any, refresh_token: str) -> RefreshToken | None:
        if refresh_token in self.used:
            log("reuse")
            self.ended.add(self.family[refresh_token])
            return None
        if self.family.get(refresh_token) in self.ended:
            return None
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(self, client: Any, refresh_token: RefreshToken, scopes: list[str]) -> OAuthToken:
        log("refresh")
        if wait_s := control().get("refresh_takes_s"):
            await anyio.sleep(wait_s)
        if error := control().get("refresh_error"):
            raise TokenError(error)
        self.used.add(refresh_token.token)
        tokens = self._issue(client.client_id, scopes, refresh_token.resource, self.family[refresh_token.token])
        log("refreshed")
        if wait_s := control().get("answer_takes_s"):
            await anyio.sleep(wait_s)
        return tokens

    async def load_access_token(self, token: str) -> AccessToken | None:
        found = self.access.get(token)
        if found is None or self.family[token] in self.ended or control().get("refuse_all"):
            return None
        return found if found.expires_at is None or found.expires_at > time.time() else None

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        log("revoke")
        self.ended.add(self.family[token.token])

    async def verify_token(self, token: str) -> AccessToken | None:
        found = await self.load_access_token(token)
        log("request", known=found is not None, token=token)
        return found

    def _issue(self, client_id: str, scopes: list[str], resource: str | None, family: str) -> OAuthToken:
        life_s, grace_s = control().get("life_s", 3600), control().get("grace_s", 0)
        expires_at = int(time.time()) + life_s + grace_s
        access, refresh = f"canary-access-{secrets.token_urlsafe(24)}", f"canary-refresh-{secrets.token_urlsafe(24)}"
        self.family[access] = self.family[refresh] = family
        self.access[access] = AccessToken(
            token=access, client_id=client_id, scopes=scopes, expires_at=expires_at, resource=resource
        )
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=client_id, scopes=scopes, resource=resource)
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=life_s, scope=" ".join(scopes) or None)


PROVIDER = Provider()


async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
    schema = {"type": "object"}
    return types.ListToolsResult(tools=[types.Tool(name=name, input_schema=schema) for name in ("read", "write")])


async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    log("call", name=params.name)
    return types.CallToolResult(content=[types.TextContent(type="text", text=f"{params.name} done")])


async def list_resources(ctx: Any, params: Any) -> types.ListResourcesResult:
    return types.ListResourcesResult(resources=[types.Resource(name="note", uri="guarded://note")])


async def read_resource(ctx: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=params.uri, text="the note")])


class WantsScope:
    """`write` is for logins with another scope."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            log("http", method=scope["method"])
        headers = {name.lower(): value for name, value in scope.get("headers", [])}
        token = PROVIDER.access.get(headers.get(b"authorization", b"").decode().removeprefix("Bearer "))
        if (
            scope.get("path") == "/mcp"
            and control().get("handshake_only")
            and headers.get(b"mcp-protocol-version") == b"2026-07-28"
        ):
            await send({"type": "http.response.start", "status": 400, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        if headers.get(b"mcp-name") == b"write" and token is not None and "files:write" not in token.scopes:
            challenge = b'Bearer error="insufficient_scope", scope="files:write"'
            await send(
                {"type": "http.response.start", "status": 403, "headers": [(b"www-authenticate", challenge)]},
            )
            await send({"type": "http.response.body", "body": b""})
            return
        await self.app(scope, receive, send)


async def main() -> None:
    registration = ClientRegistrationOptions(enabled=True, valid_scopes=["read", "files:write"])
    auth = Starlette(
        routes=create_auth_routes(
            PROVIDER,  # pyright: ignore[reportArgumentType]  # a double of the protocol
            AnyHttpUrl(ISSUER),
            client_registration_options=registration,
            revocation_options=RevocationOptions(enabled=True),
        )
    )
    server = Server(
        "guarded",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_read_resource=read_resource,
    )
    mcp = server.streamable_http_app(
        auth=AuthSettings(
            issuer_url=AnyHttpUrl(ISSUER),
            resource_server_url=AnyHttpUrl(RESOURCE),
            required_scopes=["read"],
            validate_token_resource=True,
        ),
        token_verifier=PROVIDER,
    )
    async with anyio.create_task_group() as group:
        for app, port in ((auth, AUTH_PORT), (WantsScope(mcp), MCP_PORT)):
            config = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error", lifespan="on")
            group.start_soon(uvicorn.Server(config).serve)


if __name__ == "__main__":
    anyio.run(main)
