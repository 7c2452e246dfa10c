"""Settings of an identity provider that cannot be meant are refused at the start."""

from __future__ import annotations

from typing import Any

import pytest

from goat_mcp.settings.settings import BrokenSettings, settings_of

ISSUER = "https://login.example.com/"


@pytest.mark.parametrize(
    ("identity", "why"),
    [
        ({"issuer": "http://login.example.com"}, "identity.issuer: wants https://"),
        ({"issuer": "login.example.com"}, "identity.issuer: wants https://"),
        ({"issuer": "https://user:pw@login.example.com"}, "identity.issuer: wants https://"),
        ({"issuer": "https://login.example.com?x=1"}, "identity.issuer: wants https://"),
        ({"issuer": "https://[::1"}, "identity.issuer: wants https://"),
        ({"issuer": ISSUER, "algorithms": ["none"]}, "identity.algorithms"),
        ({"issuer": ISSUER, "algorithms": ["HS256"]}, "identity.algorithms"),
        ({"issuer": ISSUER, "algorithms": []}, "identity.algorithms"),
        ({"issuer": ISSUER, "scopes": ["mcp read"]}, "identity.scopes: wants names of scopes"),
        ({"issuer": ISSUER, "scopes": 'x", realm="y'}, "identity.scopes: wants names of scopes"),
        ({"issuer": ISSUER, "jwks_url": "http://keys.example.com/jwks"}, "identity.jwks_url: wants https://"),
        ({"administrators": ["ada"]}, "there is no identity.issuer"),
        ({"issuer": ISSUER, "administrator": "ada"}, "no such setting"),
    ],
)
def test_what_cannot_be_meant_is_refused(identity: dict[str, Any], why: str) -> None:
    with pytest.raises(BrokenSettings) as refused:
        settings_of({"identity": identity}, "the test")

    assert why in str(refused.value)


def test_an_issuer_is_kept_as_it_is_written() -> None:
    settings = settings_of({"identity": {"issuer": ISSUER, "audience": "api://goat"}}, "the test")

    assert (settings.identity.issuer, settings.identity.audience) == (ISSUER, ("api://goat",))
    assert settings_of({"identity": {"issuer": "http://127.0.0.1:9/x"}}, "the test").identity.is_on
    assert not settings_of({}, "the test").identity.is_on
