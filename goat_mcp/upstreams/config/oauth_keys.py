"""The key `oauth` of an upstream's entry: who we are to its authorization server, and what we ask for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, Field, SecretStr, ValidationError

from goat_mcp.core.settings_part import Names, Secret, SettingsPart
from goat_mcp.web.http.target import check_host_entry

_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+\Z")


class BrokenOAuthKeys(ValueError):
    """The key `oauth` cannot be used; the text names what is wrong in it, and never shows a secret."""


def _https(url: str) -> str:
    if url and not url.startswith("https://"):
        raise ValueError("wants an address that begins with https://")
    return url


def _scopes(scopes: tuple[str, ...]) -> tuple[str, ...]:
    for scope in scopes:
        if not _SCOPE.match(scope):
            raise ValueError(f"{scope[:40]!r} is no scope; write one word each")
    return scopes


def _hosts(hosts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(check_host_entry(host) for host in hosts)


class OAuthOptions(SettingsPart):
    """`client_id` where the authorization server knows us already; without one we register with it.

    `client_secret` is sent by `token_endpoint_auth_method`, or else as the server's metadata has it. `issuer` is the
    only authorization server that gets it, and our logins; without it no secret is taken. `redirect_port` is for
    servers that know one redirect address only. `client_metadata_url` is a client id of its own kind, for servers that
    read it. `allow_hosts` may be asked though their addresses are private, or over plain http. `client_credentials`
    logs in without a person.
    """

    client_id: str = ""
    client_secret: Secret = SecretStr("")
    scopes: Annotated[Names, AfterValidator(_scopes)] = ()
    redirect_port: int = Field(default=0, ge=0, le=65535)
    token_endpoint_auth_method: Literal["client_secret_basic", "client_secret_post"] | None = None
    issuer: str = ""
    client_metadata_url: Annotated[str, AfterValidator(_https)] = ""
    allow_hosts: Annotated[Names, AfterValidator(_hosts)] = ()
    grant: Literal["authorization_code", "client_credentials"] = "authorization_code"


def oauth_options(value: Any) -> OAuthOptions:
    """The options in an entry. Raises `BrokenOAuthKeys`."""
    if not isinstance(value, Mapping):
        raise BrokenOAuthKeys("oauth: is not an object; write e.g. {'client_id': '...'}, or false for none")
    given = dict(cast("Mapping[str, Any]", value))
    if isinstance(given.get("scopes"), str):
        given["scopes"] = given["scopes"].split()
    try:
        options = OAuthOptions.model_validate(given)
    except ValidationError as invalid:
        first = invalid.errors(include_url=False, include_input=False)[0]
        raise BrokenOAuthKeys(f"oauth.{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    if options.client_secret.get_secret_value() and not options.client_id:
        raise BrokenOAuthKeys("oauth.client_secret: goes with a client_id; write that, too")
    if options.client_secret.get_secret_value() and not options.issuer:
        # Or else the upstream names who gets it.
        raise BrokenOAuthKeys(
            "oauth.client_secret: goes with an issuer, the only authorization server that gets it; write that, too"
        )
    if options.grant == "client_credentials":
        missing = [name for name in ("client_id", "issuer") if not getattr(options, name)]
        if not options.client_secret.get_secret_value():
            missing.append("client_secret")
        if missing:
            raise BrokenOAuthKeys(f"oauth.grant: client_credentials wants {', '.join(missing)}, too")
    return options
