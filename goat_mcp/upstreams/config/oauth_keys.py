"""The key `oauth` of an upstream's entry: who we are to its authorization server, and what we ask for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, ValidationError

from goat_mcp.core.settings_part import Names, Secret, SettingsPart
from goat_mcp.web.http.target import check_host_entry

_SECRET_KEYS = ("client_secret", "private_key", "assertion")
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+\Z")
_KEY = re.compile(r"\s*-----BEGIN (?:RSA |EC )?PRIVATE KEY-----\s")


class BrokenOAuthKeys(ValueError):
    """The key `oauth` cannot be used; the text names what is wrong in it, and never shows a secret."""


def _https_page(url: str) -> str:
    if url:
        parts = urlsplit(url)
        if parts.scheme != "https" or not parts.hostname or parts.path in ("", "/") or "@" in parts.netloc:
            raise ValueError("wants an address that begins with https:// and has a path")
    return url


def _scopes(scopes: tuple[str, ...]) -> tuple[str, ...]:
    for scope in scopes:
        if not _SCOPE.match(scope):
            raise ValueError(f"{scope[:40]!r} is no scope; write one word each")
    return scopes


def _hosts(hosts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(check_host_entry(host) for host in hosts)


def _pem(key: SecretStr) -> SecretStr:
    # Whether it can be used is seen with the first login: reading it loads a library for that.
    if (text := key.get_secret_value()) and not _KEY.match(text):
        raise ValueError("is no private key in PEM without a passphrase (-----BEGIN PRIVATE KEY-----)")
    return key


class IdentityProvider(SettingsPart):
    """The company's own, which gives an assertion for one MCP server in return for the user's (SEP-990).

    `client_id` is what it knows us by, with a `client_secret` if it wants one.
    """

    issuer: str
    client_id: str
    client_secret: Secret = SecretStr("")


class OAuthOptions(SettingsPart):
    """`client_id` where the authorization server knows us already; without one we register with it.

    `client_secret` is sent by `token_endpoint_auth_method`, or else as the server's metadata has it. `issuer` is the
    only authorization server that gets it, and our logins; without it no secret is taken. `redirect_port` is for
    servers that know one redirect address only. `client_metadata_url` is a client id of its own kind, for servers that
    read it. `allow_hosts` may be asked though their addresses are private, or over plain http.

    `client_credentials` and `jwt_bearer` log in without a person: the first as `client_id`, which `client_secret` or
    `private_key` proves; the second as whom `assertion` names. That is read again for each token, and exchanged at the
    `identity_provider` if there is one. `account: workspace` has a login for each workspace.
    """

    client_id: str = ""
    client_secret: Secret = SecretStr("")
    private_key: Annotated[Secret, AfterValidator(_pem)] = SecretStr("")
    scopes: Annotated[Names, AfterValidator(_scopes)] = ()
    redirect_port: int = Field(default=0, ge=0, le=65535)
    token_endpoint_auth_method: Literal["client_secret_basic", "client_secret_post"] | None = None
    issuer: str = ""
    client_metadata_url: Annotated[str, AfterValidator(_https_page)] = ""
    allow_hosts: Annotated[Names, AfterValidator(_hosts)] = ()
    grant: Literal["authorization_code", "client_credentials", "jwt_bearer"] = "authorization_code"
    assertion: Secret = SecretStr("")
    identity_provider: IdentityProvider | None = None
    account: Literal["user", "workspace"] = "user"

    @property
    def needs_a_person(self) -> bool:
        """Whether somebody has to log in."""
        return self.grant == "authorization_code"

    def secrets(self) -> list[str]:
        """What must be shown nowhere. A reference that is read later is not one of them."""
        provider = self.identity_provider
        values = [self.client_secret, self.private_key, *([] if provider is None else [provider.client_secret])]
        texts = [value.get_secret_value() for value in values]
        # A key may be quoted line by line.
        lines = [line for line in self.private_key.get_secret_value().splitlines() if not line.startswith("-")]
        return [text for text in (*texts, *lines) if text]


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
    given_keys = {name for name in _SECRET_KEYS if getattr(options, name).get_secret_value()}
    if "client_secret" in given_keys and not options.client_id:
        raise BrokenOAuthKeys("oauth.client_secret: goes with a client_id; write that, too")
    if given_keys and not options.issuer:
        # Or else the upstream names who gets it.
        raise BrokenOAuthKeys(
            f"oauth.{min(given_keys)}: goes with an issuer, the only authorization server that gets it; write that, too"
        )
    _check_grant(options, given_keys)
    return options


def _check_grant(options: OAuthOptions, given_keys: set[str]) -> None:
    grant = options.grant
    misplaced = {
        "private_key": grant != "client_credentials",
        "assertion": grant != "jwt_bearer",
        "identity_provider": grant != "jwt_bearer",
    }
    for name, is_misplaced in misplaced.items():
        if is_misplaced and (name in given_keys or (name == "identity_provider" and options.identity_provider)):
            wanted = "client_credentials" if name == "private_key" else "jwt_bearer"
            raise BrokenOAuthKeys(f"oauth.{name}: goes with grant: {wanted}, not with {grant}")
    if options.needs_a_person:
        return
    if options.account == "workspace":
        raise BrokenOAuthKeys(f"oauth.account: workspace is for logins of a person; leave it out with grant: {grant}")
    missing = [name for name in ("client_id", "issuer") if not getattr(options, name)]
    if grant == "client_credentials":
        if not given_keys:
            missing.append("client_secret or private_key")
        if given_keys == {"client_secret", "private_key"}:
            raise BrokenOAuthKeys("oauth.private_key: does not go with client_secret; leave one of them out")
    elif "assertion" not in given_keys:
        missing.append("assertion")
    if grant == "jwt_bearer" and options.identity_provider is not None and "client_secret" not in given_keys:
        # Whoever has the assertion alone must not be able to use it.
        missing.append("client_secret")
    if missing:
        raise BrokenOAuthKeys(f"oauth.grant: {grant} wants {', '.join(missing)}, too")
