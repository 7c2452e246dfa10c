"""A small OpenID provider on loopback. It signs with joserfc, which shares no code with what checks the tokens."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import ECKey, OKPKey, RSAKey

Key = RSAKey | ECKey | OKPKey


def rsa_key(key_id: str) -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": key_id, "use": "sig"})


@dataclass(eq=False)
class OpenIdProvider:
    """`claims` are those of whoever logs in next; `asked` counts requests by path."""

    issuer: str
    keys: list[Key] = field(default_factory=lambda: list[Key]([rsa_key("first")]))
    claims: dict[str, Any] = field(default_factory=lambda: {"sub": "ada"})
    asked: Counter[str] = field(default_factory=Counter[str])
    is_down: bool = False
    has_openid: bool = True
    """Without it only the document of RFC 8414 is there."""
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    """What the documents say instead."""
    jwks: dict[str, Any] | None = None
    """Instead of the public half of `keys`."""
    resources: list[str] = field(default_factory=list[str])
    """Those that clients asked tokens for (RFC 8707)."""
    _codes: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])

    def token(
        self, audience: str, *, key: Key | None = None, header: Mapping[str, Any] | None = None, **claims: Any
    ) -> str:
        """Good for a minute but for what is given; a claim that is None is left out."""
        key = key or self.keys[-1]
        now = int(time.time())
        content: dict[str, Any] = {"iss": self.issuer, "aud": audience, "exp": now + 60, "iat": now, **self.claims}
        content |= claims
        algorithm = {"RSA": "RS256", "EC": "ES256", "OKP": "EdDSA"}[key.key_type]
        protected: dict[str, Any] = {"alg": algorithm, "kid": key.kid, **(header or {})}
        return jwt.encode(
            {name: value for name, value in protected.items() if value is not None},
            {name: value for name, value in content.items() if value is not None},
            key,
            algorithms=[protected["alg"]],
        )

    def get(self, path: str, query: Mapping[str, list[str]]) -> tuple[int, Any]:
        """A status with a JSON value, or with the address of a redirect."""
        own = urlsplit(self.issuer).path.rstrip("/")
        if path == f"{own}/jwks":
            return 200, self.jwks or {"keys": [key.as_dict(private=False) for key in self.keys]}
        documents = {f"/.well-known/oauth-authorization-server{own}"}
        if self.has_openid:
            documents.add(f"{own}/.well-known/openid-configuration")
        if path in documents:
            return 200, self._metadata()
        if path == f"{own}/authorize":
            code = secrets.token_urlsafe()
            self._codes[code] = {name: values[0] for name, values in query.items()}
            self.resources += query.get("resource", [])
            back = {"code": code, "state": query["state"][0], "iss": self.issuer}
            return 302, f"{query['redirect_uri'][0]}?{urlencode(back)}"
        return 404, {}

    def post(self, path: str, body: bytes) -> tuple[int, Any]:
        if path.endswith("/register"):
            return 201, {**json.loads(body), "client_id": "registered", "token_endpoint_auth_method": "none"}
        form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        login = self._codes.pop(form.get("code", ""), None)
        verifier = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        if login is None or login["code_challenge"] != base64.urlsafe_b64encode(verifier).rstrip(b"=").decode():
            return 400, {"error": "invalid_grant"}
        token = self.token(login["resource"], scope=login.get("scope", ""))
        return 200, {"access_token": token, "token_type": "Bearer", "expires_in": 60, "scope": login.get("scope", "")}

    def _metadata(self) -> dict[str, Any]:
        own = self.issuer.rstrip("/")
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{own}/authorize",
            "token_endpoint": f"{own}/token",
            "registration_endpoint": f"{own}/register",
            "jwks_uri": f"{own}/jwks",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
            "authorization_response_iss_parameter_supported": True,
            **self.metadata,
        }


@contextmanager
def openid_provider(path: str = "") -> Generator[OpenIdProvider]:
    """At `path` of a port of its own, until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            self._answer(lambda: provider.get(parts.path, parse_qs(parts.query)))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            self._answer(lambda: provider.post(self.path, body))

        def _answer(self, answered: Any) -> None:
            provider.asked[urlsplit(self.path).path] += 1
            status: int
            value: Any
            status, value = (503, None) if provider.is_down else answered()
            self.send_response(status)
            body = b"" if status == 302 else json.dumps(value).encode()
            if status == 302:
                self.send_header("location", value)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    provider = OpenIdProvider(f"http://127.0.0.1:{server.server_port}{path}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
