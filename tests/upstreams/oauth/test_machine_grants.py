"""Logins without a person: client credentials by secret and by key, with a real authorization server. AUT-1, AUT-2."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import jwt
import pytest

from goat_mcp.core.errors import ErrorCode
from goat_mcp.core.redaction import Redactor
from goat_mcp.upstreams.oauth import upstream_login
from goat_mcp.upstreams.oauth.login_contract import AuthServerDown, LoginNeeded
from goat_mcp.upstreams.oauth.login_store import LoginStore
from goat_mcp.upstreams.status import UpstreamState
from tests.upstreams.fleet import fleet
from tests.upstreams.oauth.guarded_server import logins_of, stored_in
from tests.upstreams.oauth.machine_server import (
    SECRET,
    by_key,
    by_secret,
    key_pair,
    machine_login,
    machine_server,
    secret_file,
)
from tests.upstreams.oauth.test_renewal import calling_process

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

PROCESSES = 4


def contents(files: Iterable[Path]) -> bytes:
    return b"".join(file.read_bytes() for file in files)


@pytest.mark.parametrize(
    ("methods", "configured", "sent"),
    [
        (None, None, "client_secret_basic"),
        (["client_secret_post", "client_secret_basic"], None, "client_secret_basic"),
        (["client_secret_post"], None, "client_secret_post"),
        (["client_secret_basic"], "client_secret_post", "client_secret_post"),
    ],
)
async def test_a_secret_is_sent_as_the_server_says_or_as_the_entry_does(
    tmp_path: Path, methods: list[str] | None, configured: str | None, sent: str
) -> None:
    """AUT-1: also with characters that a header has to quote."""
    with machine_server(tmp_path, methods=methods) as server:
        oauth = by_secret(server, token_endpoint_auth_method=configured, scopes="read files:write")
        async with fleet(tmp_path, {"web": server.entry(oauth=oauth)}, logins=logins_of(tmp_path)) as running:
            answers = [(await running.call(f"mcp__web__{name}")).text for name in ("read", "write")]
        made = server.events("token")

    assert answers == ["read done", "write done"]
    assert made == [
        {
            "event": "token",
            "grant": "client_credentials",
            "method": sent,
            "scopes": ["read", "files:write"],
            "resource": server.url,
        }
    ]


@pytest.mark.parametrize(
    ("kind", "algorithms", "signed"),
    [
        ("ES256", None, "ES256"),
        ("RS256", ["RS256", "ES256"], "RS256"),
        ("RS256", ["PS256"], "PS256"),
        ("EdDSA", ["EdDSA"], "EdDSA"),
    ],
)
async def test_a_key_proves_who_we_are_by_an_algorithm_that_it_and_the_server_know(
    tmp_path: Path, kind: str, algorithms: list[str] | None, signed: str
) -> None:
    """AUT-1, CFG-3: RFC 7523; the key comes from a file of the user's."""
    keys = key_pair(kind)
    with machine_server(tmp_path, public_key=keys.public, algorithms=algorithms) as server:
        oauth = by_key(server, secret_file(tmp_path / "key.pem", keys.private))
        async with fleet(tmp_path, {"web": server.entry(oauth=oauth)}, logins=logins_of(tmp_path)) as running:
            answer = (await running.call("mcp__web__read")).text
        (made,) = server.events("token")

    claims = jwt.decode(made["client_assertion"], options={"verify_signature": False})
    assert answer == "read done"
    assert made["method"] == f"private_key_jwt {signed}"
    assert (claims["iss"], claims["sub"], claims["aud"]) == ("machine", "machine", server.issuer)


async def test_the_token_is_fetched_when_it_is_first_wanted_and_the_next_process_uses_it(tmp_path: Path) -> None:
    """AUT-2: nobody logs in before."""
    with machine_server(tmp_path) as server:
        entries = {"web": server.entry(oauth=by_secret(server))}
        async with fleet(tmp_path, entries, logins=logins_of(tmp_path), first_list=False):
            before = server.count("token")
        for _ in range(2):
            async with fleet(tmp_path, entries, logins=logins_of(tmp_path)) as running:
                await running.call("mcp__web__read")
        fetched = server.count("token")
    (facts,) = LoginStore(logins_of(tmp_path).state).all()

    assert (before, fetched) == (0, 1)
    assert (facts.client_id, facts.status, facts.can_renew) == ("machine", "valid", True)


async def test_processes_that_start_together_fetch_one_token(tmp_path: Path) -> None:
    """AUT-2."""
    go = tmp_path / "go"
    with machine_server(tmp_path, takes_s=0.5) as server:
        oauth = json.dumps(by_secret(server))
        processes = [calling_process(tmp_path, server.url, go, oauth) for _ in range(PROCESSES)]
        try:
            for process in processes:
                assert process.stdout is not None
                assert await anyio.to_thread.run_sync(process.stdout.readline) == "ready\n"
            go.touch()
            ends = [
                await anyio.to_thread.run_sync(lambda p=process: p.communicate(timeout=120)) for process in processes
            ]
        finally:
            for process in processes:
                process.kill()
                process.wait()
        fetched, calls = server.count("token"), server.count("call")

    assert [out for out, _ in ends] == ["read done\n"] * PROCESSES, ends
    assert (fetched, calls) == (1, PROCESSES)


async def test_a_token_that_ends_in_the_middle_is_replaced_and_the_call_runs_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AUT-2, LIF-6: the 401 proves that it did not run."""
    monkeypatch.setattr(upstream_login, "RENEWED_AGAIN_AFTER_S", 0.0)
    with machine_server(tmp_path, era=1) as server:
        entries = {"web": server.entry(oauth=by_secret(server))}
        async with fleet(tmp_path, entries, logins=logins_of(tmp_path)) as running:
            await running.call("mcp__web__read")
            server.control(era=2)
            answer = (await running.call("mcp__web__read")).text
        fetched, calls = server.count("token"), server.count("call")

    assert answer == "read done"
    assert (fetched, calls) == (2, 2)


async def test_tokens_that_live_for_a_moment_are_renewed_in_time(tmp_path: Path) -> None:
    with machine_server(tmp_path, life_s=2) as server:
        login = machine_login(tmp_path, server, by_secret(server))
        first = await login.after_refusal(None)
        with anyio.fail_after(30):
            while (second := await login.token()) == first:  # noqa: ASYNC110  # a clock is waited for
                await anyio.sleep(0.1)
        fetched = server.count("token")

    assert second is not None
    assert fetched == 2


async def test_more_scopes_are_asked_for_without_a_person(tmp_path: Path) -> None:
    """AUT-3: a 403 that says insufficient_scope."""
    with machine_server(tmp_path) as server:
        entries = {"web": server.entry(oauth=by_secret(server))}
        async with fleet(tmp_path, entries, logins=logins_of(tmp_path)) as running:
            write = (await running.call("mcp__web__write")).text
            read = (await running.call("mcp__web__read")).text
        asked = [event["scopes"] for event in server.events("token")]

    assert (write, read) == ("write done", "read done")
    assert asked == [["read"], ["read", "files:write"]]


async def test_a_server_that_grants_less_is_told_and_not_asked_again_with_each_try(tmp_path: Path) -> None:
    with machine_server(tmp_path, grants=["read"]) as server:
        entries = {"web": server.entry(oauth=by_secret(server))}
        async with fleet(tmp_path, entries, logins=logins_of(tmp_path)) as running:
            errors = [await running.failing("mcp__web__write") for _ in range(3)]
            read = (await running.call("mcp__web__read")).text
        fetched = server.count("token")

    assert read == "read done"
    assert {error.code for error in errors} == {ErrorCode.AUTH}
    assert all("does not grant the scope 'files:write' to this client" in error.message for error in errors)
    assert fetched == 2


async def test_a_client_that_is_refused_says_what_to_correct_and_does_not_ask_again_and_again(tmp_path: Path) -> None:
    """AUT-3: nobody can log in instead; some servers lock out who fails often."""
    with machine_server(tmp_path, refuse="invalid_client", echoes=True) as server:
        entries = {"web": server.entry(oauth=by_secret(server))}
        async with fleet(tmp_path, entries, logins=logins_of(tmp_path)) as running:
            status = running.status("web")
            error = running.upstreams.why_missing("mcp__web__read")
        login = machine_login(tmp_path / "other", server, by_secret(server))
        before = server.count("refused")
        for _ in range(3):
            with pytest.raises(LoginNeeded, match="invalid_client"):
                await login.after_refusal(None)
        asked = server.count("refused") - before

    assert (status.state, status.reason_code) == (UpstreamState.FAILED, "auth_required")
    assert status.detail.endswith("/token refused goat-mcp: invalid_client (HTTP 401)")
    assert error is not None
    assert error.code is ErrorCode.AUTH
    assert "correct `oauth` in the entry" in error.suggestion
    assert "canary" not in f"{status}{error}{error.suggestion}"
    assert asked == 1


@pytest.mark.parametrize(
    ("kind", "key", "why"),
    [
        ("ES256", "another", "invalid_client (HTTP 401)"),
        ("ES256", "damaged", "oauth.private_key cannot be read"),
        ("weak RSA", "own", "of a kind that is not used"),
        ("ES384", "own", "its authorization server takes ES256; oauth.private_key signs ES384"),
    ],
)
async def test_a_key_that_is_refused_or_of_no_use_is_named_and_not_shown(
    tmp_path: Path, kind: str, key: str, why: str
) -> None:
    """CFG-3."""
    keys = key_pair(kind)
    private = {
        "own": keys.private,
        "another": key_pair(kind).private,
        "damaged": keys.private[:60] + keys.private[90:],
    }[key]
    with machine_server(tmp_path, public_key=keys.public, algorithms=["ES256"]) as server:
        login = machine_login(tmp_path, server, by_key(server, private))
        with pytest.raises(LoginNeeded) as needed:
            await login.after_refusal(None)

    assert why in needed.value.why
    assert not any(line in needed.value.why for line in private.splitlines())


@pytest.mark.parametrize(
    ("says", "why"),
    [
        ([200, "text/html", "<html>Welcome"], "no bearer token"),
        ([200, "application/json", '{"token": "canary-elsewhere"}'], "no bearer token"),
        ([200, "application/json", '{"access_token": "canary-x", "token_type": "DPoP"}'], "no bearer token"),
        ([200, "application/json", "[" * 5000], "no bearer token"),
        ([503, "text/html", "canary-busy"], "no error code (HTTP 503)"),
        ([429, "application/json", '{"error": "slow_down"}'], "slow_down (HTTP 429)"),
        ([302, "text/html", "canary-go-elsewhere"], "no error code (HTTP 302)"),
    ],
)
async def test_garbage_for_a_token_is_a_server_that_is_down_and_ends_nothing(
    tmp_path: Path, says: list[Any], why: str
) -> None:
    """Nothing of what it said is shown, and the next try is made."""
    with machine_server(tmp_path, says=says) as server:
        login = machine_login(tmp_path, server, by_secret(server))
        with pytest.raises(AuthServerDown) as down:
            await login.after_refusal(None)
        server.control()
        token = await login.after_refusal(None)

    assert why in str(down.value)
    assert "canary" not in str(down.value)
    assert token.startswith("canary-access")


@pytest.mark.parametrize(
    ("clock_s", "is_taken", "said"), [(-20, True, ""), (-400, False, "ahead of"), (900, False, "behind")]
)
async def test_clocks_that_differ_a_little_do_not_matter_and_more_is_said(
    tmp_path: Path, clock_s: int, is_taken: bool, said: str
) -> None:
    keys = key_pair("ES256")
    with machine_server(tmp_path, public_key=keys.public, clock_s=clock_s) as server:
        login = machine_login(tmp_path, server, by_key(server, keys.private))
        try:
            await login.after_refusal(None)
            why = ""
        except LoginNeeded as needed:
            why = needed.why

    assert (why == "") is is_taken
    assert said in why
    assert said == "" or "the clock of this machine is" in why


async def test_nothing_is_sent_to_another_authorization_server_than_the_configured_one(tmp_path: Path) -> None:
    """R-UP-9: the upstream names one itself."""
    with machine_server(tmp_path) as server:
        oauth = {**by_secret(server), "issuer": "https://login.example.com"}
        login = machine_login(tmp_path, server, oauth)
        with pytest.raises(LoginNeeded, match="issuer mismatch"):
            await login.after_refusal(None)
        lying = machine_login(tmp_path / "lying", server, by_secret(server))
        server.control(issuer="https://login.example.com")
        with pytest.raises(LoginNeeded, match="issuer mismatch"):
            await lying.after_refusal(None)
        asked = server.events("token", "refused")

    assert asked == []


async def test_no_secret_key_or_assertion_is_in_any_log_status_error_or_stored_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """AUT-1, CFG-3, R-SECRET-2: at debug level, with every library's own lines; the server quotes what it got."""
    caplog.set_level(logging.DEBUG)
    keys, redactor = key_pair("ES256"), Redactor()
    with machine_server(tmp_path, public_key=keys.public) as server:
        state = tmp_path / "one"
        state.mkdir()
        oauths = {"secret": by_secret(server), "key": by_key(server, "${env:CLIENT_KEY}")}
        seen: list[Any] = []
        for name, oauth in oauths.items():
            entries = {name: server.entry(oauth=oauth)}
            environ = {"CLIENT_KEY": keys.private}
            logins = logins_of(state / name, redactor=redactor)
            async with fleet(state / name, entries, logins=logins, environ=environ) as running:
                await running.call(f"mcp__{name}__read")
                server.control(public_key=keys.public, era=2, refuse="invalid_client", echoes=True)
                error = await running.failing(f"mcp__{name}__read")
                seen += [error, error.suggestion, error.facts, running.status(name), *running.upstreams.configs]
            server.control(public_key=keys.public)
            (state / name / "upstreams.json").unlink()  # the user's own
            (state / name / "state" / "oauth").rename(tmp_path / f"tokens of {name}")
        assertions = [event["client_assertion"] for event in server.events("token") if "client_assertion" in event]
    print(*seen, file=sys.stderr)

    written = caplog.text + "".join(capfd.readouterr())
    on_disk = stored_in(state / "secret") + stored_in(state / "key")
    kept = contents(tmp_path.glob("tokens of */*"))  # noqa: ASYNC240  # nothing else runs by now
    key_lines = [line for line in keys.private.splitlines() if not line.startswith("-")]
    assert assertions
    assert b"canary-access" in kept
    for secret in (SECRET, "canary", *assertions, *key_lines):
        assert secret not in written
        assert secret.encode() not in on_disk
        assert secret == "canary" or secret.encode() not in kept


async def test_logging_out_ends_the_token_there_too(tmp_path: Path) -> None:
    with machine_server(tmp_path) as server:
        login = machine_login(tmp_path, server, by_secret(server))
        await login.after_refusal(None)
        outcome = await login.log_out()
        revoked = server.events("revoke")

    assert outcome == (True, "")
    assert [event["method"] for event in revoked] == ["client_secret_basic"]
    assert LoginStore(logins_of(tmp_path).state).all() == []
