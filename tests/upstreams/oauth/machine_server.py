"""Start `servers/machines.py`, and say who we are to it."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from goat_mcp.core.redaction import Redactor
from goat_mcp.upstreams.config.entry import HttpEndpoint
from goat_mcp.upstreams.oauth.upstream_login import UpstreamLogin
from tests.upstreams.fleet import load
from tests.upstreams.oauth.guarded_server import Guarded, guarded_server, logins_of

SECRET = "canary-machine/secret+"
SHARED_KEY = "canary-key-of-the-identity-provider-and-those-who-trust-it"


@dataclass
class KeyPair:
    """Of a client, in PEM."""

    private: str
    public: str
    encrypted: str


def key_pair(kind: str) -> KeyPair:
    key: Any = {
        "ES256": lambda: ec.generate_private_key(ec.SECP256R1()),
        "ES384": lambda: ec.generate_private_key(ec.SECP384R1()),
        "RS256": lambda: rsa.generate_private_key(65537, 2048),
        "weak RSA": lambda: rsa.generate_private_key(65537, 1024),
        "EdDSA": ed25519.Ed25519PrivateKey.generate,
    }[kind]()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    encrypted = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"x")).decode()
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    return KeyPair(private, public, encrypted)


def secret_file(file: Path, secret: str) -> str:
    """The reference to a file with this secret."""
    file.touch(mode=0o600)
    file.write_text(secret)
    return f"${{file:{file}}}"


@contextmanager
def machine_server(folder: Path, **control: Any) -> Generator[Guarded]:
    with guarded_server(folder, script="machines.py", **control) as server:
        yield server


def by_secret(server: Guarded, **members: Any) -> dict[str, Any]:
    """The key `oauth`."""
    known = {"client_id": "machine", "client_secret": SECRET, "issuer": server.issuer}
    return {"grant": "client_credentials", **known, **members}


def by_key(server: Guarded, key: str, **members: Any) -> dict[str, Any]:
    known = {"client_id": "machine", "private_key": key, "issuer": server.issuer}
    return {"grant": "client_credentials", **known, **members}


def by_assertion(server: Guarded, assertion: str, **members: Any) -> dict[str, Any]:
    known = {"client_id": "machine", "assertion": assertion, "issuer": server.issuer}
    return {"grant": "jwt_bearer", **known, **members}


def by_id_token(server: Guarded, assertion: str, **members: Any) -> dict[str, Any]:
    """Through the identity provider."""
    provider = {"issuer": f"{server.issuer}idp", "client_id": "idp-client", **members}
    return by_assertion(server, assertion, client_secret=SECRET, identity_provider=provider)


def workload_token(server: Guarded, **claims: Any) -> str:
    """As a platform gives it to what runs there."""
    of_us = {"iss": "https://platform.test", "sub": "workload", "aud": server.issuer, "exp": int(time.time()) + 300}
    return jwt.encode({**of_us, **claims}, SHARED_KEY)


def id_token(**claims: Any) -> str:
    """As the user's sign-in at the company leaves it."""
    of_user = {"sub": "anna", "aud": "idp-client", "exp": int(time.time()) + 300, "nonce": "canary-id-token"}
    return jwt.encode({**of_user, **claims}, SHARED_KEY)


def machine_login(
    folder: Path, server: Guarded, oauth: dict[str, Any], redactor: Redactor | None = None
) -> UpstreamLogin:
    """The login of one process."""
    folder.mkdir(exist_ok=True)
    (config,) = load(folder, {"web": server.entry(oauth=oauth)}).configs
    assert isinstance(config.target, HttpEndpoint)
    return logins_of(folder, redactor=redactor).load(config, config.target)
