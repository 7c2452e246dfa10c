"""The key `oauth` of an entry: what goes together, and what is shown of it. CFG-3."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from goat_mcp.core.redaction import Redactor
from goat_mcp.state.secret_references import SecretReferences
from goat_mcp.upstreams.config.entry import HttpEndpoint
from goat_mcp.upstreams.config.upstream_files import load_upstream_files
from tests.upstreams.fleet import load
from tests.upstreams.oauth.machine_server import key_pair, secret_file

ISSUER = {"issuer": "https://login.example.com"}
MACHINE = {"grant": "client_credentials", "client_id": "machine", **ISSUER}
BEARER = {"grant": "jwt_bearer", "client_id": "machine", "assertion": "canary-token", **ISSUER}
IDP = {"issuer": "https://idp.example.com", "client_id": "idp-client"}
PEM = "-----BEGIN PRIVATE KEY-----\ncanary\n-----END PRIVATE KEY-----\n"


@pytest.mark.parametrize(
    ("oauth", "problem"),
    [
        (MACHINE, "client_credentials wants client_secret or private_key, too"),
        ({**MACHINE, "client_id": "", "private_key": PEM}, "client_credentials wants client_id, too"),
        ({**MACHINE, "client_secret": "canary-secret", "private_key": PEM}, "does not go with client_secret"),
        ({**MACHINE, "private_key": "canary-no-key"}, "oauth.private_key: Value error, is no private key in PEM"),
        ({**MACHINE, "private_key": key_pair("ES256").encrypted}, "is no private key in PEM without a passphrase"),
        (
            {"grant": "client_credentials", "client_id": "m", "private_key": PEM},
            "oauth.private_key: goes with an issuer",
        ),
        (
            {"client_id": "m", "private_key": PEM, **ISSUER},
            "goes with grant: client_credentials, not with authorization",
        ),
        ({**MACHINE, "client_secret": "canary-secret", "account": "workspace"}, "workspace is for logins of a person"),
        ({**BEARER, "assertion": ""}, "jwt_bearer wants assertion, too"),
        ({**BEARER, "identity_provider": IDP}, "jwt_bearer wants client_secret, too"),
        ({**BEARER, "identity_provider": {"issuer": "https://x.test"}}, "oauth.identity_provider.client_id: Field req"),
        (
            {"assertion": "canary-token", **ISSUER},
            "oauth.assertion: goes with grant: jwt_bearer, not with authorization",
        ),
        ({"identity_provider": IDP}, "oauth.identity_provider: goes with grant: jwt_bearer"),
        ({**BEARER, "assertion": "${file:canary"}, "a reference that does not end"),
        ({**BEARER, "assertion": "${env:NO_SUCH}"}, "'NO_SUCH' is not set"),
        ({"client_metadata_url": "https://example.com"}, "begins with https:// and has a path"),
        ({"client_metadata_url": "http://example.com/me.json"}, "begins with https:// and has a path"),
        ({"account": "project"}, "oauth.account: Input should be 'user' or 'workspace'"),
        ({"scopes": ["${secret:canary}"]}, "is a secret and would be seen there"),
    ],
)
def test_what_does_not_go_together_is_named_and_no_secret_shown(
    tmp_path: Path, oauth: dict[str, Any], problem: str
) -> None:
    files = load(tmp_path, {"web": {"url": "https://mcp.example.com", "oauth": oauth}})
    (found,) = files.problems

    assert files.configs == ()
    assert problem in found.message
    assert "canary-" not in found.message


def test_secrets_of_all_kinds_come_from_references_and_are_redacted(tmp_path: Path) -> None:
    """A key line by line, too. An assertion is read later."""
    keys, redactor = key_pair("RS256"), Redactor()
    with_key = {**MACHINE, "private_key": secret_file(tmp_path / "key.pem", keys.private)}
    with_idp = {
        **BEARER,
        "assertion": f"${{file:{tmp_path}/not-there-yet}}",
        "client_secret": "${env:CLIENT_SECRET}",
        "identity_provider": {**IDP, "client_secret": "${env:IDP_SECRET}"},
    }
    environ = {"CLIENT_SECRET": "canary-client-secret", "IDP_SECRET": "canary-idp-secret"}
    load(tmp_path, {name: {"url": "https://a.test", "oauth": o} for name, o in (("k", with_key), ("i", with_idp))})
    files = load_upstream_files([tmp_path / "upstreams.json"], references=SecretReferences(environ, redactor))
    targets = {config.name: config.target for config in files.configs}
    key, idp = targets["k"], targets["i"]

    assert isinstance(key, HttpEndpoint) and key.oauth is not None
    assert isinstance(idp, HttpEndpoint) and idp.oauth is not None and idp.oauth.identity_provider is not None
    assert key.oauth.private_key.get_secret_value() == keys.private.rstrip("\n")
    assert idp.oauth.identity_provider.client_secret.get_secret_value() == "canary-idp-secret"
    assert idp.oauth.assertion.get_secret_value() == with_idp["assertion"]
    assert "canary" not in redactor.text(" ".join(environ.values()))
    assert not any(line in redactor.text(f"line {line}") for line in keys.private.splitlines()[1:-1])
    assert "canary" not in repr(files)
