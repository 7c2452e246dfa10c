"""What claims mean by the settings: principal, profile, administrator."""

from __future__ import annotations

from typing import Any

import pytest

from goat_mcp.server.identity.challenge import RefusedToken
from goat_mcp.server.identity.claims import ClaimMapping, Person
from goat_mcp.settings.identity import IdentitySettings

PROFILES = ("dev", "ops", "guest")


def person(claims: dict[str, Any], **settings: Any) -> Person | str:
    identity = IdentitySettings(issuer="https://login.example.com", **settings)
    try:
        return ClaimMapping(identity, lambda: PROFILES).person({"sub": "ada", **claims})
    except RefusedToken as refused:
        return f"{refused.status}: {refused.reason}"


NOTHING = "403: this identity has no profile here"
OF_GROUP = {"profile_of_group": {"Operations": "ops", "Developers": "dev"}}


@pytest.mark.parametrize(
    ("claims", "settings", "expected"),
    [
        ({}, {}, Person("user:ada", "", False)),
        ({"email": "ada@example.com"}, {"principal_claim": "email"}, Person("user:ada@example.com", "", False)),
        ({"groups": ["Developers"]}, OF_GROUP, Person("user:ada", "dev", False)),
        ({"groups": ["Developers", "Operations"]}, OF_GROUP, Person("user:ada", "ops", False)),
        ({"groups": "Developers"}, OF_GROUP, Person("user:ada", "dev", False)),
        ({"groups": ["developers"]}, OF_GROUP, NOTHING),
        ({"groups": {"Developers": True}}, OF_GROUP, NOTHING),
        ({}, OF_GROUP, NOTHING),
        ({}, {**OF_GROUP, "profile": "guest"}, Person("user:ada", "guest", False)),
        ({"p": "dev"}, {"profile_claim": "p", "profile": "guest"}, Person("user:ada", "dev", False)),
        ({"p": ["dev"]}, {"profile_claim": "p"}, NOTHING),
        ({"p": "other"}, {"profile_claim": "p"}, "403: this identity has a profile that is not configured here"),
        (
            {"realm_access": {"roles": ["Developers"]}},
            {**OF_GROUP, "groups_claim": "realm_access.roles"},
            Person("user:ada", "dev", False),
        ),
        (
            {"https://example.com/groups": ["Developers"]},
            {**OF_GROUP, "groups_claim": "https://example.com/groups"},
            Person("user:ada", "dev", False),
        ),
        ({}, {"administrators": ["ada"]}, Person("user:ada", "", True)),
        ({}, {"administrators": ["Ada"]}, Person("user:ada", "", False)),
        ({}, {"administrators": ["ada"], **OF_GROUP}, Person("user:ada", "", True)),
        (
            {"groups": ["Developers", "Admins"]},
            {"administrator_groups": ["Admins"], **OF_GROUP},
            Person("user:ada", "dev", True),
        ),
        ({"sub": "local"}, {}, Person("user:local", "", False)),
        ({"sub": "x" * 257}, {}, "401: the token names nobody in its claim sub"),
        ({"sub": 7}, {}, "401: the token names nobody in its claim sub"),
        ({"sub": "\u202eada"}, {}, "401: the token names nobody in its claim sub"),
    ],
)
def test_claims_by_the_settings(claims: dict[str, Any], settings: dict[str, Any], expected: Person | str) -> None:
    assert person(claims, **settings) == expected
