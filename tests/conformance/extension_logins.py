"""What the upstream's entry says of its login in the suite's extension scenarios of the client side."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

EXTENSION_LOGINS = (
    "auth/client-credentials-jwt",
    "auth/client-credentials-basic",
    "auth/enterprise-managed-authorization",
    "auth/dpop",
    "auth/dpop-nonce",
    "auth/wif-jwt-bearer",
)
NOT_IN_THE_SDK = dict.fromkeys(
    ("auth/dpop", "auth/dpop-nonce"),
    "DPoP (RFC 9449): the SDK's client makes no proofs, and takes no token that wants one",
)
"""Scenarios that fail, and why."""


def extension_login(url: str, scenario: str, context: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """The key `oauth`; secrets are references to files in `folder`, as users write them."""
    if scenario in NOT_IN_THE_SDK:
        return {}
    oauth: dict[str, Any] = {"grant": "client_credentials", "client_id": context["client_id"], "issuer": _issuer(url)}
    if "client_secret" in context:
        oauth["client_secret"] = _reference(folder / "secret", context["client_secret"])
    if "private_key_pem" in context:
        oauth["private_key"] = _reference(folder / "key", context["private_key_pem"])
    if "valid_jwt" in context:
        oauth |= {"grant": "jwt_bearer", "assertion": _reference(folder / "jwt", context["valid_jwt"])}
    if "idp_id_token" in context:
        provider = {"issuer": context["idp_issuer"], "client_id": context["idp_client_id"]}
        assertion = _reference(folder / "id_token", context["idp_id_token"])
        oauth |= {"grant": "jwt_bearer", "assertion": assertion, "identity_provider": provider}
    return oauth


def _issuer(url: str) -> str:
    """Who the suite's authorization server is. A user of a real one is told with the client id; the suite says it in
    the metadata of its server only."""
    parts = urlsplit(url)
    where = f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource{parts.path}"
    return httpx.get(where, trust_env=False).json()["authorization_servers"][0]


def _reference(file: Path, secret: str) -> str:
    file.touch(mode=0o600)
    file.write_text(secret)
    return f"${{file:{file}}}"
