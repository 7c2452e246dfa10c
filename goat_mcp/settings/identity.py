"""Whose tokens `serve --http` accepts beside its own, and what their claims mean: `identity.*`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from goat_mcp.core.settings_part import Names, SettingsPart

Algorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
"""Signatures that a public key checks. `none` and those of a shared secret (HS256...) cannot be chosen."""


_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")


def _check_url(url: str) -> str:
    """As it was written: RFC 8414 compares issuers character by character, and some end with a slash."""
    if not url:
        return url
    if not _is_plain_url(url):
        raise ValueError("wants https://HOST[:PORT][/PATH] (http on this machine only), without user, password, ? or #")
    return url


def _is_plain_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        has_address = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _THIS_MACHINE)
    return is_safe and has_address and "@" not in parts.netloc and not set('?# "\\') & set(url) and url.isascii()


_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+\Z")
"""RFC 6749, 3.3."""


def _check_scope(scope: str) -> str:
    return _check_scopes((scope,))[0]


def _check_scopes(scopes: tuple[str, ...]) -> tuple[str, ...]:
    if wrong := [scope for scope in scopes if not _SCOPE.match(scope)]:
        raise ValueError(f"wants names of scopes, one for each entry; got {wrong[0]!r}")
    return scopes


ProviderUrl = Annotated[str, AfterValidator(_check_url)]


class IdentitySettings(SettingsPart):
    """`issuer` is the OpenID provider; empty means that only tokens of our own count. `resource` is the URL by which
    clients reach `/mcp`, if it is not the address that is served. A token must be for one of `audience`, by default for
    `resource`, and have all `scopes`.

    `principal_claim` says who it is. `groups_claim` and `profile_claim` may be a path with dots. The profile is the one
    of the token's `profile_claim`, else that of the first group of `profile_of_group` it is in, else `profile`; without
    any, a token gets in only if none of the three is set, or as an administrator.

    `tools` are the built-in tools that clients over HTTP get, as names, `toolset:NAME` or `preset:NAME`: a server of
    several people runs nothing of its own unless somebody says so. `workspace: per_principal` gives each a directory.

    `administrators` are principals, `administrator_groups` groups that see and decide what waits for everybody. Whoever
    decides over HTTP needs a token with `approve_scope`, which no MCP client should have: a model would approve its own
    calls with it.
    """

    issuer: ProviderUrl = ""
    jwks_url: ProviderUrl = ""
    resource: ProviderUrl = ""
    audience: Names = ()
    algorithms: tuple[Algorithm, ...] = Field(default=("RS256", "PS256", "ES256", "EdDSA"), min_length=1)
    scopes: Annotated[Names, AfterValidator(_check_scopes)] = ()
    principal_claim: str = Field(default="sub", min_length=1)
    groups_claim: str = Field(default="groups", min_length=1)
    profile_claim: str = ""
    profile_of_group: Mapping[str, str] = {}
    profile: str = ""
    administrators: Names = ()
    administrator_groups: Names = ()
    approve_scope: Annotated[str, AfterValidator(_check_scope)] = "goat:approve"
    tools: Names = ()
    workspace: Literal["shared", "per_principal"] = "shared"
    leeway_s: float = Field(default=30.0, ge=0, le=300)

    @model_validator(mode="after")
    def _needs_issuer(self) -> Self:
        if not self.issuer and (given := sorted(self.model_fields_set - {"issuer"})):
            raise ValueError(f"{given[0]} says something about tokens of a provider, and there is no identity.issuer")
        return self

    @property
    def is_on(self) -> bool:
        return bool(self.issuer)

    @property
    def maps_profiles(self) -> bool:
        """Whether every client but an administrator needs a profile."""
        return bool(self.profile_claim or self.profile_of_group or self.profile)
