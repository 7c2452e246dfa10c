"""The HTTP endpoint as a resource server: which tokens get in, and what everybody else is answered (R-HTTP-1)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey
from mcp.server.auth.middleware.auth_context import get_access_token

from goat_mcp.server.caller_identity import CallerIdentity
from tests.openid_provider import OpenIdProvider, openid_provider, rsa_key
from tests.server.http.test_guard import CARDS
from tests.server.identity.guarded_goat import OPERATORS, GuardedGoat, guarded_goat

pytestmark = pytest.mark.anyio
AUDIENCE = "https://mcp.example.com/mcp"
METADATA = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp"


@pytest.fixture
def provider() -> Iterator[OpenIdProvider]:
    with openid_provider("/tenant") as provider:
        yield provider


@pytest.fixture
async def goat(provider: OpenIdProvider, tmp_path: Path) -> AsyncGenerator[GuardedGoat]:
    identity = {"issuer": provider.issuer, "resource": AUDIENCE, "scopes": ["mcp"], "tools": ["Bash"]}
    provider.claims["scope"] = "openid mcp"
    async with guarded_goat(tmp_path, identity) as goat:
        yield goat


def part(value: Any) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def by_hand(provider: OpenIdProvider, header: dict[str, Any], sign: Callable[[bytes], bytes]) -> str:
    claims = {"iss": provider.issuer, "aud": AUDIENCE, "exp": int(time.time()) + 60, "sub": "ada", "scope": "mcp"}
    signed = f"{part(header)}.{part(claims)}"
    return f"{signed}.{part(sign(signed.encode()))}"


def with_public_key_as_secret(provider: OpenIdProvider, form: str) -> str:
    """The classic forgery: what everybody can read is taken for a shared secret."""
    key = provider.keys[0]
    public = key.as_pem(private=False) if form == "pem" else json.dumps(key.as_dict(private=False)).encode()
    header = {"alg": "HS256", "kid": "first", "typ": "JWT"}
    return by_hand(provider, header, lambda signed: hmac.new(public, signed, hashlib.sha256).digest())


def tampered(token: str) -> str:
    header, claims, signature = token.split(".")
    content = json.loads(base64.urlsafe_b64decode(claims + "=="))
    return f"{header}.{part({**content, 'sub': 'operator'})}.{signature}"


BAD: dict[str, tuple[Callable[[OpenIdProvider], str], str]] = {
    "no token at all": (lambda _: "nonsense", "the token is not known here"),
    "three parts of nothing": (lambda _: "a.b.c", "the token is not known here"),
    "alg none": (
        lambda p: by_hand(p, {"alg": "none", "kid": "first"}, lambda _: b""),
        "the token is signed with an algorithm that does not count here",
    ),
    "alg NONE": (
        lambda p: by_hand(p, {"alg": "NONE"}, lambda _: b""),
        "the token is signed with an algorithm that does not count here",
    ),
    "no alg": (
        lambda p: by_hand(p, {"kid": "first"}, lambda _: b""),
        "the token is signed with an algorithm that does not count here",
    ),
    "HS256 with the public key": (
        lambda p: with_public_key_as_secret(p, "pem"),
        "the token is signed with an algorithm that does not count here",
    ),
    "HS256 with the public key's JSON": (
        lambda p: with_public_key_as_secret(p, "jwk"),
        "the token is signed with an algorithm that does not count here",
    ),
    "a key of somebody else's by the same name": (
        lambda p: p.token(AUDIENCE, key=rsa_key("first")),
        "the token's signature is wrong",
    ),
    "an unknown key": (lambda p: p.token(AUDIENCE, key=rsa_key("unknown")), "the provider has no such key"),
    "its own key in the header": (
        lambda p: p.token(AUDIENCE, key=(key := rsa_key("first")), header={"jwk": key.as_dict(private=False)}),
        "the token's signature is wrong",
    ),
    "an algorithm of another kind of key": (
        lambda p: p.token(AUDIENCE, key=ECKey.generate_key("P-256", {"kid": "first"})),
        "the provider has no such key",
    ),
    "changed after it was signed": (lambda p: tampered(p.token(AUDIENCE)), "the token's signature is wrong"),
    "expired": (lambda p: p.token(AUDIENCE, exp=int(time.time()) - 40), "the token has expired"),
    "no expiry": (lambda p: p.token(AUDIENCE, exp=None), "the token lacks a claim that is needed"),
    "an expiry that is no number": (lambda p: p.token(AUDIENCE, exp="soon"), "the token is invalid"),
    "not valid yet": (lambda p: p.token(AUDIENCE, nbf=int(time.time()) + 300), "the token is not valid yet"),
    "for another audience": (lambda p: p.token("https://other.example.com/mcp"), "the token is for another audience"),
    "for a path below": (lambda p: p.token(f"{AUDIENCE}/narrow"), "the token is for another audience"),
    "for no audience": (lambda p: p.token(AUDIENCE, aud=None), "the token lacks a claim that is needed"),
    "of another issuer": (
        lambda p: p.token(AUDIENCE, iss="https://evil.example.com"),
        "the token is from another issuer",
    ),
    "of no issuer": (lambda p: p.token(AUDIENCE, iss=None), "the token lacks a claim that is needed"),
    "an issuer with a slash more": (
        lambda p: p.token(AUDIENCE, iss=f"{p.issuer}/"),
        "the token is from another issuer",
    ),
    "an unknown critical header": (
        lambda p: critical(p),
        "the token is not known here",
    ),
    "of nobody": (lambda p: p.token(AUDIENCE, sub=None), "the token names nobody in its claim sub"),
    "of an empty name": (lambda p: p.token(AUDIENCE, sub=""), "the token names nobody in its claim sub"),
    "of a name with control characters": (
        lambda p: p.token(AUDIENCE, sub="ada\x1b[2J"),
        "the token names nobody in its claim sub",
    ),
    "of a name that is a list": (lambda p: p.token(AUDIENCE, sub=["ada"]), "the token is invalid"),
    "far too long": (lambda p: p.token(AUDIENCE, more="x" * 20_000), "the token is too long"),
}


def critical(provider: OpenIdProvider) -> str:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding

    private: Any = provider.keys[0].private_key
    header = {"alg": "RS256", "kid": "first", "crit": ["exotic"], "exotic": True}
    return by_hand(provider, header, lambda signed: private.sign(signed, padding.PKCS1v15(), hashes.SHA256()))


@pytest.mark.parametrize("name", BAD)
async def test_a_bad_token_is_401_with_what_a_client_needs_next(
    goat: GuardedGoat, provider: OpenIdProvider, name: str
) -> None:
    make, reason = BAD[name]
    token = make(provider)

    answer = await goat.post(token)

    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == (
        f'Bearer error="invalid_token", error_description="{reason}", resource_metadata="{METADATA}", scope="mcp"'
    )
    assert answer.headers["connection"] == "close"
    assert token not in answer.text
    assert "Mcp-Session-Id" not in answer.headers


@pytest.mark.parametrize("shown", [None, "Basic b3BlcmF0b3I6eA==", "Bearer"])
async def test_without_a_token_no_error_is_named(goat: GuardedGoat, shown: str | None) -> None:
    headers = {"Authorization": shown} if shown else {}

    answer = await goat.http.post(goat.url, json={}, headers=headers)

    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == f'Bearer resource_metadata="{METADATA}", scope="mcp"'


async def test_a_token_without_a_needed_scope_is_403_and_says_which(
    goat: GuardedGoat, provider: OpenIdProvider
) -> None:
    answer = await goat.post(provider.token(AUDIENCE, scope="openid"))

    assert answer.status_code == 403
    assert answer.headers["www-authenticate"] == (
        'Bearer error="insufficient_scope", '
        'error_description="the token lacks a scope that is needed here", '
        f'resource_metadata="{METADATA}", scope="mcp"'
    )


@pytest.mark.parametrize(
    "key", [ECKey.generate_key("P-256", {"kid": "k"}), OKPKey.generate_key("Ed25519", {"kid": "k"})]
)
async def test_keys_of_other_kinds_are_understood(
    goat: GuardedGoat, provider: OpenIdProvider, key: ECKey | OKPKey
) -> None:
    provider.keys = [key]

    assert (await goat.post(provider.token(AUDIENCE))).status_code == 200
    assert (await goat.post(provider.token([AUDIENCE, "another"]))).status_code == 200  # type: ignore[arg-type]
    assert (await goat.post(provider.token(f"{AUDIENCE}/"))).status_code == 200


async def test_a_shared_secret_or_a_short_key_of_the_provider_counts_nothing(
    goat: GuardedGoat, provider: OpenIdProvider
) -> None:
    secret = OctKey.import_key("a-secret-of-everybody-0123456789-0123456789", {"kid": "secret"})
    short = RSAKey.generate_key(1024, {"kid": "short"}, auto_kid=False)
    provider.jwks = {"keys": [secret.as_dict(), short.as_dict(private=False), {"kty": "RSA"}, "no key", {}]}
    sign = hmac.new(b"a-secret-of-everybody-0123456789-0123456789", digestmod=hashlib.sha256).copy

    def with_secret(signed: bytes) -> bytes:
        mac = sign()
        mac.update(signed)
        return mac.digest()

    forged = by_hand(provider, {"alg": "HS256", "kid": "secret"}, with_secret)

    assert (await goat.post(forged)).status_code == 401
    assert (await goat.post(provider.token(AUDIENCE, key=short))).status_code == 401


async def test_the_metadata_is_at_its_well_known_paths(goat: GuardedGoat, provider: OpenIdProvider) -> None:
    base = goat.url.removesuffix("/mcp")
    paths = ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"]

    answers = [await goat.http.get(base + path, headers={"Authorization": "Bearer whatever"}) for path in paths]
    posted = await goat.http.post(base + paths[0], json={})
    foreign = await goat.http.get(base + paths[0], headers={"Host": "evil.example.com"})
    other = await goat.http.get(f"{base}/.well-known/openid-configuration")

    for answer in answers:
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "application/json"
        assert "access-control-allow-origin" not in answer.headers
        assert answer.json() == {
            "resource": AUDIENCE,
            "authorization_servers": [provider.issuer],
            "scopes_supported": ["mcp"],
            "bearer_methods_supported": ["header"],
            "resource_name": "goat-mcp",
        }
    assert [posted.status_code, foreign.status_code, other.status_code] == [405, 421, 404]


@pytest.mark.parametrize("path", CARDS)
async def test_nothing_else_is_at_a_well_known_path_or_says_what_the_server_has(
    goat: GuardedGoat, provider: OpenIdProvider, path: str
) -> None:
    base, bearer = goat.url.removesuffix("/mcp"), {"Authorization": f"Bearer {provider.token(AUDIENCE)}"}

    answers = [await goat.http.get(base + path, headers=headers) for headers in ({}, bearer)]

    assert [answer.status_code for answer in answers] in ([404, 404], [401, 404])
    assert not any("tools" in answer.text for answer in answers)


async def test_tokens_of_our_own_still_count(goat: GuardedGoat) -> None:
    assert (await goat.post(OPERATORS)).status_code == 200


async def test_the_name_of_the_resource_is_served(goat: GuardedGoat, provider: OpenIdProvider) -> None:
    path = goat.url.partition("127.0.0.1")[0] + goat.url.partition("://")[2]
    body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    headers = {"Authorization": f"Bearer {provider.token(AUDIENCE)}"}

    named = await goat.http.post(path, json=body, headers={**headers, "Host": "mcp.example.com"})
    other = await goat.http.post(path, json=body, headers={**headers, "Host": "other.example.com"})

    assert (named.status_code != 421, other.status_code) == (True, 421)


async def test_the_token_reaches_no_tool_no_record_and_no_file(
    goat: GuardedGoat, provider: OpenIdProvider, capfd: pytest.CaptureFixture[str]
) -> None:
    token = provider.token(AUDIENCE)

    told = await goat.call(token, "Bash", command="env; cat /proc/self/cmdline")
    refused = await goat.post(tampered(token))

    signature = token.rsplit(".", 1)[1]
    assert not told["isError"]
    everywhere = [json.dumps(told), refused.text, str(refused.headers), goat.files(), *capfd.readouterr()]
    assert [where for where in everywhere if signature in where or token in where] == []
    assert '"user:ada"' in goat.files()


@pytest.mark.parametrize("ours", [True, False])
async def test_no_handler_sees_the_token(
    goat: GuardedGoat, provider: OpenIdProvider, monkeypatch: pytest.MonkeyPatch, ours: bool
) -> None:
    seen: list[dict[str, str]] = []
    found = CallerIdentity.of

    def noting(self: CallerIdentity, ctx: Any) -> Any:
        seen.append(dict(ctx.request.headers))
        held = get_access_token()
        assert held is not None and held.token == ""
        return found(self, ctx)

    monkeypatch.setattr(CallerIdentity, "of", noting)
    token = OPERATORS if ours else provider.token(AUDIENCE)

    await goat.call(token, "Bash", command="true")
    await goat.call(token, "Bash", command="true")  # by the fast path

    assert len(seen) >= 2
    assert all("authorization" not in headers and token not in str(headers) for headers in seen)
