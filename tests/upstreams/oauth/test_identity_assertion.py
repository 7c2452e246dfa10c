"""The JWT bearer grant: a workload's own token, and an ID token that an identity provider exchanges. AUT-1."""

from __future__ import annotations

import logging
import sys
import time
from pathlib import Path
from typing import Any

import jwt
import pytest

from goat_mcp.core.errors import ErrorCode
from goat_mcp.upstreams.oauth.login_contract import AuthServerDown, LoginNeeded
from tests.upstreams.fleet import fleet
from tests.upstreams.oauth.guarded_server import logins_of, stored_in
from tests.upstreams.oauth.machine_server import (
    SECRET,
    by_assertion,
    by_id_token,
    id_token,
    machine_login,
    machine_server,
    secret_file,
    workload_token,
)

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"


async def test_a_workload_shows_the_token_of_its_platform(tmp_path: Path) -> None:
    """SEP-1933: a client without a secret."""
    with machine_server(tmp_path) as server:
        token = workload_token(server)
        oauth = by_assertion(server, secret_file(tmp_path / "token", token))
        async with fleet(tmp_path, {"web": server.entry(oauth=oauth)}, logins=logins_of(tmp_path)) as running:
            answer = (await running.call("mcp__web__read")).text
        (made,) = server.events("token")

    assert answer == "read done"
    assert (made["grant"], made["method"], made["assertion"]) == (JWT_BEARER, "none", token)


async def test_the_assertion_is_read_again_for_each_token(tmp_path: Path) -> None:
    """CFG-3: it is short-lived, and somebody else renews it. It need not be there at the start."""
    file = tmp_path / "token"
    with machine_server(tmp_path, life_s=0) as server:
        login = machine_login(tmp_path, server, by_assertion(server, f"${{file:{file}}}"))
        with pytest.raises(LoginNeeded, match=r"oauth.assertion cannot be read: .*there is no such file"):
            await login.after_refusal(None)
        sent = [workload_token(server, sub=name) for name in ("one", "two")]
        for token in sent:
            secret_file(file, token)
            await login.after_refusal(None)
        shown = [event["assertion"] for event in server.events("token")]

    assert shown == sent


async def test_an_assertion_that_says_it_has_ended_is_not_sent(tmp_path: Path) -> None:
    with machine_server(tmp_path) as server:
        ended = workload_token(server, exp=int(time.time()) - 3600)
        login = machine_login(tmp_path, server, by_assertion(server, ended))
        with pytest.raises(LoginNeeded, match=r"oauth.assertion ended at 20\d\d-.* UTC; it is read again") as needed:
            await login.after_refusal(None)
        asked = server.events("token", "refused")

    assert ended not in needed.value.why
    assert asked == []


async def test_an_id_token_is_exchanged_for_one_server_and_that_for_its_token(tmp_path: Path) -> None:
    """SEP-990: RFC 8693 at the identity provider, then RFC 7523 at the authorization server."""
    with machine_server(tmp_path) as server:
        mine = id_token()
        oauth = by_id_token(server, secret_file(tmp_path / "id_token", mine), client_secret="canary-idp-secret")
        oauth["scopes"] = ["read"]
        async with fleet(tmp_path, {"web": server.entry(oauth=oauth)}, logins=logins_of(tmp_path)) as running:
            answer = (await running.call("mcp__web__read")).text
        (exchanged,), (made,) = server.events("exchange"), server.events("token")

    claims = jwt.decode(made["assertion"], options={"verify_signature": False})
    assert answer == "read done"
    assert exchanged == {
        "event": "exchange",
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "requested_token_type": "urn:ietf:params:oauth:token-type:id-jag",
        "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
        "audience": server.issuer,
        "resource": server.url,
        "scope": "read",
        "client_id": "idp-client",
        "has_secret": True,
    }
    assert (made["grant"], made["method"]) == (JWT_BEARER, "client_secret_basic")
    assert (claims["sub"], claims["aud"], claims["resource"]) == ("anna", server.issuer, server.url)


@pytest.mark.parametrize(
    ("control", "why"),
    [
        ({"idp_refuse": "access_denied"}, "the identity provider refused to exchange oauth.assertion: access_denied"),
        ({"idp_type": "urn:ietf:params:oauth:token-type:access_token"}, "another kind of token"),
        ({"refuse": "invalid_grant"}, "refused goat-mcp: invalid_grant"),
    ],
)
async def test_who_said_no_is_named_and_nothing_of_the_id_token_is_shown(
    tmp_path: Path, control: dict[str, Any], why: str
) -> None:
    with machine_server(tmp_path, echoes=True, **control) as server:
        mine = id_token()
        login = machine_login(tmp_path, server, by_id_token(server, mine))
        with pytest.raises(LoginNeeded) as needed:
            await login.after_refusal(None)
        given = server.count("token")

    assert why in needed.value.why
    assert not any(part in needed.value.why for part in mine.split("."))
    assert given == 0


async def test_an_identity_provider_that_is_not_there_is_down_and_one_without_metadata_is_none(tmp_path: Path) -> None:
    with machine_server(tmp_path) as server:
        away = by_id_token(server, id_token(), issuer="http://127.0.0.1:1/idp")
        none = by_id_token(server, id_token(), issuer=f"{server.issuer}nobody")
        with pytest.raises(AuthServerDown):
            await machine_login(tmp_path / "a", server, away).after_refusal(None)
        with pytest.raises(LoginNeeded, match="there is no identity provider at"):
            await machine_login(tmp_path / "b", server, none).after_refusal(None)


async def test_a_call_says_that_the_operator_has_to_do_something_and_shows_no_page(tmp_path: Path) -> None:
    """AUT-3: nobody could log in instead."""
    with machine_server(tmp_path, refuse="invalid_grant") as server:
        oauth = by_assertion(server, workload_token(server))
        async with fleet(tmp_path, {"web": server.entry(oauth=oauth)}, logins=logins_of(tmp_path)) as running:
            error = running.upstreams.why_missing("mcp__web__read")

    assert error is not None
    assert error.code is ErrorCode.AUTH
    assert "invalid_grant" in error.message
    assert "The operator must correct `oauth`" in error.suggestion


async def test_no_assertion_is_in_any_log_status_error_or_stored_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """AUT-1, CFG-3, R-SECRET-2: at debug level, with every library's own lines; the servers quote what they got."""
    caplog.set_level(logging.DEBUG)
    state = tmp_path / "state-of-one"
    state.mkdir()
    with machine_server(tmp_path) as server:
        mine = id_token()
        oauth = by_id_token(server, secret_file(tmp_path / "id_token", mine), client_secret="canary-idp-secret")
        async with fleet(state, {"web": server.entry(oauth=oauth)}, logins=logins_of(state)) as running:
            await running.call("mcp__web__read")
            server.control(era=2, refuse="invalid_grant", echoes=True)
            refused = await running.failing("mcp__web__read")
            server.control(era=2, idp_refuse="invalid_grant")
            login = machine_login(tmp_path / "other", server, oauth)
            with pytest.raises(LoginNeeded) as needed:
                await login.after_refusal(None)
            seen = [refused, refused.suggestion, refused.facts, running.status("web"), needed.value.why]
        (made,) = server.events("token")
    print(*seen, file=sys.stderr)

    written = caplog.text + "".join(capfd.readouterr())
    on_disk = stored_in(state)
    for secret in (SECRET, "canary-idp-secret", "canary-id-token", *mine.split(".")[1:], made["assertion"]):
        assert secret not in written
        assert secret.encode() not in on_disk
    assert "canary" not in written
