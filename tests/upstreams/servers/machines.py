"""An MCP server for clients without a person, its authorization server, and an identity provider at `/idp` of that.

`machines.py AUTH_PORT MCP_PORT LOG CONTROL`: what happens is written to LOG, one JSON line each; CONTROL is read again
for each request. Of the authorization server: `methods` and `algorithms` in its metadata, `issuer` there, `public_key`
(PEM) of the client, `refuse` (an error), `says` (status, type and text instead of an answer), `echoes` what it got in
its error, `takes_s`, `life_s` of tokens, `clock_s` (its clock is ahead by so much), `era`: tokens of another one are
refused, `grants` other scopes than asked. Of the identity provider: `idp_refuse`, `idp_type` of the token it gives.
"""

from __future__ import annotations

import gc

if __name__ == "__main__":
    # Importing the SDK takes a tenth longer with it, and tests start this hundreds of times.
    gc.disable()

import base64
import json
import secrets
import sys
import time
import warnings
from email.utils import formatdate
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import anyio
import jwt
import mcp_types as types
import uvicorn
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.lowlevel import Server
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

warnings.simplefilter("ignore")
AUTH_PORT, MCP_PORT = int(sys.argv[1]), int(sys.argv[2])
LOG, CONTROL = Path(sys.argv[3]), Path(sys.argv[4])
ISSUER = f"http://127.0.0.1:{AUTH_PORT}/"  # as the SDK writes it
IDP = f"http://127.0.0.1:{AUTH_PORT}/idp"
RESOURCE = f"http://127.0.0.1:{MCP_PORT}/mcp"
CLIENT, SECRET = "machine", "canary-machine/secret+"
SHARED_KEY = "canary-key-of-the-identity-provider-and-those-who-trust-it"
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"
TOKENS: dict[str, tuple[AccessToken, Any]] = {}
SEEN_IDS: set[str] = set()


def log(event: str, **facts: Any) -> None:
    with LOG.open("a") as file:
        file.write(json.dumps({"event": event, **facts}) + "\n")


def control() -> dict[str, Any]:
    return json.loads(CONTROL.read_text()) if CONTROL.exists() else {}


def now_s() -> float:
    return time.time() + control().get("clock_s", 0)


def answer(document: dict[str, Any], status: int = 200) -> Response:
    return JSONResponse(document, status, headers={"date": formatdate(now_s(), usegmt=True)})


class Refused(Exception):
    """With an error of RFC 6749."""


async def metadata(request: Request) -> Response:
    c = control()
    known = {
        "token_endpoint_auth_methods_supported": c.get("methods"),
        "token_endpoint_auth_signing_alg_values_supported": c.get("algorithms"),
    }
    return answer(
        {
            "issuer": c.get("issuer", ISSUER),
            "authorization_endpoint": f"{ISSUER}authorize",
            "token_endpoint": f"{ISSUER}token",
            "revocation_endpoint": f"{ISSUER}revoke",
            **{name: value for name, value in known.items() if value is not None},
        }
    )


async def idp_metadata(request: Request) -> Response:
    return answer(
        {"issuer": IDP, "authorization_endpoint": f"{IDP}/authorize", "token_endpoint": f"{IDP}/token", "jwks_uri": IDP}
    )


async def token(request: Request) -> Response:
    form = {name: str(value) for name, value in (await request.form()).items()}
    c = control()
    if wait_s := c.get("takes_s"):
        await anyio.sleep(wait_s)
    if says := c.get("says"):
        log("asked")
        return Response(says[2], says[0], media_type=says[1])
    try:
        if error := c.get("refuse"):
            raise Refused(error)
        method = _authenticated(form, request.headers.get("authorization", ""))
        if form["grant_type"] == JWT_BEARER:
            _check_assertion(form["assertion"], form["resource"])
        elif form["grant_type"] != "client_credentials":
            raise Refused("unsupported_grant_type")
    except Refused as refused:
        log("refused", error=str(refused), grant=form.get("grant_type"))
        echo = (
            {"error_description": json.dumps([form, request.headers.get("authorization")])} if c.get("echoes") else {}
        )
        return answer({"error": str(refused), **echo}, 401 if str(refused) == "invalid_client" else 400)
    scopes = c.get("grants") or form.get("scope", "read").split()
    life_s = c.get("life_s", 3600)
    made = AccessToken(
        token=f"canary-access-{secrets.token_urlsafe(24)}",
        client_id=CLIENT,
        scopes=scopes,
        expires_at=int(time.time()) + 3600,
        resource=form.get("resource"),
    )
    TOKENS[made.token] = made, c.get("era")
    secret_values = {name: form[name] for name in ("assertion", "client_assertion") if name in form}
    log("token", grant=form["grant_type"], method=method, scopes=scopes, resource=form.get("resource"), **secret_values)
    return answer({"access_token": made.token, "token_type": "bearer", "expires_in": life_s, "scope": " ".join(scopes)})


def _authenticated(form: dict[str, str], header: str) -> str:
    """How the client has proved who it is. Raises `Refused`."""
    if header.startswith("Basic "):
        name, _, secret = base64.b64decode(header[6:]).decode().partition(":")
        if (unquote(name), unquote(secret)) != (CLIENT, SECRET):
            raise Refused("invalid_client")
        return "client_secret_basic"
    if "client_assertion" in form:
        return f"private_key_jwt {_signed_by_client(form['client_assertion'])}"
    if "client_secret" in form:
        if (form.get("client_id"), form["client_secret"]) != (CLIENT, SECRET):
            raise Refused("invalid_client")
        return "client_secret_post"
    if form.get("client_id") != CLIENT or form["grant_type"] != JWT_BEARER:
        raise Refused("invalid_client")
    return "none"


def _signed_by_client(assertion: str) -> str:
    algorithm = jwt.get_unverified_header(assertion)["alg"]
    try:
        claims = jwt.decode(
            assertion,
            control().get("public_key", ""),
            algorithms=control().get("algorithms") or ["ES256", "RS256", "EdDSA"],
            audience=ISSUER,
            options={"verify_exp": False, "verify_iat": False},
        )
    except jwt.PyJWTError:
        raise Refused("invalid_client") from None
    is_new = claims["jti"] not in SEEN_IDS
    SEEN_IDS.add(claims["jti"])
    # No tolerance at all: some servers have none.
    if (claims["iss"], claims["sub"]) != (CLIENT, CLIENT) or not claims["iat"] <= now_s() < claims["exp"] or not is_new:
        raise Refused("invalid_client")
    return algorithm


def _check_assertion(assertion: str, resource: str) -> None:
    try:
        claims = jwt.decode(assertion, SHARED_KEY, algorithms=["HS256"], audience=ISSUER)
    except jwt.PyJWTError:
        raise Refused("invalid_grant") from None
    if jwt.get_unverified_header(assertion)["typ"] == "oauth-id-jag+jwt" and claims["resource"] != resource:
        raise Refused("invalid_grant")


async def exchange(request: Request) -> Response:
    form = {name: str(value) for name, value in (await request.form()).items()}
    try:
        claims = jwt.decode(form["subject_token"], SHARED_KEY, algorithms=["HS256"], audience="idp-client")
        error = control().get("idp_refuse", "")
    except jwt.PyJWTError:
        claims, error = {}, "invalid_grant"
    has_secret = request.headers.get("authorization", "").startswith("Basic ")
    log("exchange", **{name: value for name, value in form.items() if name != "subject_token"}, has_secret=has_secret)
    if error:
        return answer({"error": error, "error_description": form["subject_token"]}, 400)
    granted = {"iss": IDP, "sub": claims["sub"], "aud": form["audience"], "resource": form["resource"]}
    made = jwt.encode(
        {**granted, "client_id": CLIENT, "exp": int(time.time()) + 300},
        SHARED_KEY,
        headers={"typ": "oauth-id-jag+jwt"},
    )
    return answer(
        {"access_token": made, "issued_token_type": control().get("idp_type", ID_JAG), "token_type": "N_A"},
    )


async def revoke(request: Request) -> Response:
    form = {name: str(value) for name, value in (await request.form()).items()}
    try:
        method = _authenticated({**form, "grant_type": ""}, request.headers.get("authorization", ""))
    except Refused as refused:
        return answer({"error": str(refused)}, 401)
    TOKENS.pop(form["token"], None)
    log("revoke", method=method)
    return Response()


class Verifier:
    async def verify_token(self, token: str) -> AccessToken | None:
        found, era = TOKENS.get(token, (None, None))
        is_known = found is not None and era == control().get("era")
        log("request", known=is_known)
        return found if is_known else None


class WantsScope:
    """`write` is for tokens with another scope."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope.get("headers", []))
        found, _ = TOKENS.get(headers.get(b"authorization", b"").decode().removeprefix("Bearer "), (None, None))
        if headers.get(b"mcp-name") == b"write" and found is not None and "files:write" not in found.scopes:
            challenge = b'Bearer error="insufficient_scope", scope="files:write"'
            await send({"type": "http.response.start", "status": 403, "headers": [(b"www-authenticate", challenge)]})
            await send({"type": "http.response.body", "body": b""})
            return
        await self.app(scope, receive, send)


async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
    schema = {"type": "object"}
    return types.ListToolsResult(tools=[types.Tool(name=name, input_schema=schema) for name in ("read", "write")])


async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    log("call", name=params.name)
    return types.CallToolResult(content=[types.TextContent(type="text", text=f"{params.name} done")])


async def main() -> None:
    auth = Starlette(
        routes=[
            Route("/.well-known/oauth-authorization-server", metadata),
            Route("/idp/.well-known/openid-configuration", idp_metadata),
            Route("/token", token, methods=["POST"]),
            Route("/revoke", revoke, methods=["POST"]),
            Route("/idp/token", exchange, methods=["POST"]),
        ]
    )
    server = Server("machines", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
    mcp = server.streamable_http_app(
        auth=AuthSettings(
            issuer_url=AnyHttpUrl(ISSUER),
            resource_server_url=AnyHttpUrl(RESOURCE),
            required_scopes=["read"],
            validate_token_resource=True,
        ),
        token_verifier=Verifier(),
    )
    async with anyio.create_task_group() as group:
        for app, port in ((auth, AUTH_PORT), (WantsScope(mcp), MCP_PORT)):
            config = uvicorn.Config(
                app, host="127.0.0.1", port=port, log_level="error", lifespan="on", date_header=False
            )
            group.start_soon(uvicorn.Server(config).serve)


if __name__ == "__main__":
    anyio.run(main)
