"""Logins of HTTP upstreams, with a real authorization server: AUT-1, AUT-3, CFG-3."""

from __future__ import annotations

import logging
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.core.errors import ErrorCode
from goat_mcp.core.redaction import Redactor
from goat_mcp.upstreams.config.entry import HttpEndpoint
from goat_mcp.upstreams.oauth.login_store import LoginStore
from goat_mcp.upstreams.status import UpstreamState
from tests.upstreams.fleet import fleet, load
from tests.upstreams.oauth.guarded_server import (
    Agreeable,
    MemoryKeyring,
    guarded_server,
    log_in,
    login_of,
    logins_of,
    stored_in,
)

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]


async def test_an_upstream_that_wants_a_login_says_so_and_its_calls_name_the_command(tmp_path: Path) -> None:
    """AUT-3."""
    with guarded_server(tmp_path) as server:
        await log_in(tmp_path / "elsewhere", server)
        async with fleet(tmp_path, {"my web": server.entry()}, logins=logins_of(tmp_path)) as running:
            status = running.status("my web")
            error = running.upstreams.why_missing("mcp__my_web__read")

    assert (status.state, status.reason_code) == (UpstreamState.FAILED, "auth_required")
    assert error is not None
    assert error.code is ErrorCode.AUTH
    assert "goat-mcp auth login 'my web'" in error.suggestion


async def test_a_call_works_right_after_somebody_has_logged_in(tmp_path: Path) -> None:
    """AUT-3: nobody waits for the next try of a gateway that was refused."""
    with guarded_server(tmp_path) as server:
        entries = {"web": server.entry()}
        await log_in(tmp_path, server)
        async with fleet(tmp_path, entries, logins=logins_of(tmp_path)):
            pass  # its tools are known from now on
        await login_of(tmp_path, server.url).log_out()
        async with fleet(tmp_path, entries, logins=logins_of(tmp_path)) as running:
            refused = await running.failing("mcp__web__read")
            at_once = await running.failing("mcp__web__read")
            await log_in(tmp_path, server)
            answer = (await running.call("mcp__web__read")).text
            status = running.status("web")

    assert (refused.code, at_once.code) == (ErrorCode.AUTH, ErrorCode.AUTH)
    assert "goat-mcp auth login web" in at_once.suggestion
    assert answer == "read done"
    assert (status.state, status.reason_code) == (UpstreamState.READY, "")


@pytest.mark.parametrize("logs_in", [False, True])
async def test_status_says_that_a_login_has_ended_until_there_is_another(tmp_path: Path, logs_in: bool) -> None:
    """OBS-1, AUT-3: the connection stands, and every call is refused."""
    with guarded_server(tmp_path, refresh_error="invalid_grant") as server:
        await log_in(tmp_path, server)
        async with fleet(tmp_path, {"web": server.entry()}, logins=logins_of(tmp_path)) as running:
            works = (await running.call("mcp__web__read")).text
            before = running.status("web").reason_code
            server.control(refuse_all=True)
            refused = await running.failing("mcp__web__read")
            ended = running.status("web")
            server.control()
            if logs_in:
                await log_in(tmp_path, server)
            else:
                await running.call("mcp__web__read")
            after = running.status("web").reason_code

    assert (works, before, refused.code) == ("read done", "", ErrorCode.AUTH)
    assert ended.reason_code == "auth_required"
    assert ended.detail in refused.message
    assert after == ""


async def test_every_client_hears_of_a_refusal_that_another_ones_connection_has_met(tmp_path: Path) -> None:
    """AUT-3, LIF-4: they have a connection each, and one time to try again."""
    with guarded_server(tmp_path) as server:
        entries = {"web": server.entry()}
        await log_in(tmp_path, server)
        async with fleet(tmp_path, entries, logins=logins_of(tmp_path)):
            pass  # its tools are known from now on
        await login_of(tmp_path, server.url).log_out()
        async with fleet(tmp_path, entries, logins=logins_of(tmp_path)) as running:
            refused = [await running.failing("mcp__web__read", principal=name) for name in ("a", "b")]
            await log_in(tmp_path, server)
            answers = [(await running.call("mcp__web__read", principal=name)).text for name in ("b", "a")]

    assert [(error.code, "goat-mcp auth login web" in error.suggestion) for error in refused] == [
        (ErrorCode.AUTH, True)
    ] * 2
    assert answers == ["read done"] * 2


async def test_after_a_login_every_request_carries_our_token(tmp_path: Path) -> None:
    """AUT-1: discovery, registration, PKCE, resource indicator."""
    with guarded_server(tmp_path) as server:
        await log_in(tmp_path, server)
        async with fleet(tmp_path, {"web": server.entry()}, logins=logins_of(tmp_path)) as running:
            answer = (await running.call("mcp__web__read")).text
        requests = server.events("request")
        asked = server.events("authorize")

    assert answer == "read done"
    assert asked == [{"event": "authorize", "scopes": ["read"], "resource": server.url, "pkce": True}]
    assert all(request["known"] for request in requests)
    assert len(requests) >= 3


async def test_a_handshake_upstream_gets_the_token_too_on_its_stream(tmp_path: Path) -> None:
    """AUT-1: every kind of request."""
    with guarded_server(tmp_path, handshake_only=True) as server:
        await log_in(tmp_path, server)
        async with fleet(tmp_path, {"web": server.entry()}, logins=logins_of(tmp_path)) as running:
            answer = (await running.call("mcp__web__read")).text
            await running.until(lambda: "GET" in server.methods())
        methods = server.methods()
        requests = server.events("request")

    assert answer == "read done"
    assert methods >= {"GET", "POST"}
    assert all(request["known"] for request in requests)


async def test_tokens_are_kept_in_the_keyring_and_not_on_disk(tmp_path: Path) -> None:
    """AUT-1."""
    keyring = MemoryKeyring()
    with guarded_server(tmp_path) as server:
        await log_in(tmp_path, server, keyring=keyring)
        logins = logins_of(tmp_path, keyring=keyring)
        async with fleet(tmp_path, {"web": server.entry()}, logins=logins) as running:
            answer = (await running.call("mcp__web__read")).text

    assert answer == "read done"
    assert [("canary-access" in text, "canary-refresh" in text) for text in keyring.kept.values()] == [(True, True)]
    assert b"canary" not in stored_in(tmp_path)


async def test_without_a_keyring_tokens_are_in_a_file_of_ours_that_the_list_names(tmp_path: Path) -> None:
    """AUT-1."""
    with guarded_server(tmp_path) as server:
        await log_in(tmp_path, server)
    store = LoginStore(logins_of(tmp_path).state)
    (facts,) = store.all()
    file = store.file_of(facts)

    assert facts.kept_in == "file"
    assert (facts.resource, facts.issuer, facts.principal) == (server.url, server.issuer, "owner")
    assert b"canary-access" in file.read_bytes()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


async def test_a_keyring_that_takes_no_long_text_leaves_the_tokens_to_a_file(tmp_path: Path) -> None:
    class Narrow(MemoryKeyring):
        def set_password(self, service: str, user: str, password: str) -> None:
            super().set_password(service, user, password[:50])

    with guarded_server(tmp_path) as server:
        await log_in(tmp_path, server, keyring=Narrow())
        token = await login_of(tmp_path, server.url, keyring=Narrow()).token()

    assert token is not None
    assert token.startswith("canary-access")


async def test_no_token_code_or_secret_is_in_any_log_status_error_or_stored_catalog(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """AUT-1, CFG-3, R-SECRET-2: canaries, at debug level, with every library's own lines."""
    caplog.set_level(logging.DEBUG)
    keyring, redactor = MemoryKeyring(), Redactor()
    secret = "canary-static-client-secret"
    with guarded_server(tmp_path) as server:
        entry = server.entry(
            oauth={"client_id": "static-client", "client_secret": "${env:SECRET_REF}", "issuer": server.issuer}
        )
        config = load(tmp_path, {"web": entry}, SECRET_REF=secret).configs[0]
        assert isinstance(config.target, HttpEndpoint)
        logins = logins_of(tmp_path, keyring=keyring, redactor=redactor)
        await logins.load(config, config.target).log_in(Agreeable())
        async with fleet(tmp_path, {"web": entry}, logins=logins, environ={"SECRET_REF": secret}) as running:
            await running.call("mcp__web__read")
            server.control(refuse_all=True, refresh_error="invalid_grant")
            error = await running.failing("mcp__web__read")
            status = running.status("web")
        events = [{**event, "token": ""} for event in server.events()]
    print(error, error.suggestion, error.facts, status, config, redactor.text(repr(keyring)), file=sys.stderr)

    seen = caplog.text + "".join(capfd.readouterr())
    assert len(keyring.kept) == 1
    assert events
    assert error.code is ErrorCode.AUTH
    assert "canary" not in seen
    assert b"canary" not in stored_in(tmp_path)
    token = (await logins.load(config, config.target).token()) or ""
    assert token.startswith("canary-access")
    assert "canary" not in redactor.text(f"told: {token}")


async def test_a_token_in_the_headers_wins_over_a_login(tmp_path: Path) -> None:
    """AUT-3."""
    with guarded_server(tmp_path) as server:
        await log_in(tmp_path, server)
        entries = {
            "headed": server.entry(headers={"authorization": "Bearer of-the-user"}),
            "off": server.entry(oauth=False),
        }
        async with fleet(tmp_path, entries, logins=logins_of(tmp_path)) as running:
            reasons = [running.status(name).reason_code for name in entries]
            error = running.upstreams.why_missing("mcp__headed__read")
        tokens = {request["token"] for request in server.events("request") if not request["known"]}

    assert reasons == ["auth_required", "auth_required"]
    assert tokens == {"of-the-user"}
    assert error is not None
    assert "headers" in error.suggestion


async def test_a_scope_that_is_missing_is_named_with_the_way_to_get_it(tmp_path: Path) -> None:
    """AUT-3: a 403 that says insufficient_scope."""
    with guarded_server(tmp_path) as server:
        await log_in(tmp_path, server)
        async with fleet(tmp_path, {"web": server.entry()}, logins=logins_of(tmp_path)) as running:
            error = await running.failing("mcp__web__write")
            read = (await running.call("mcp__web__read")).text
            await log_in(tmp_path, server, scopes="files:write")
            write = (await running.call("mcp__web__write")).text
        asked = [event["scopes"] for event in server.events("authorize")]

    assert error.code is ErrorCode.AUTH
    assert "files:write" in error.message
    assert "--scope files:write" in error.message
    assert "goat-mcp auth login web" in error.suggestion
    assert (read, write) == ("read done", "write done")
    assert asked == [["read"], ["read", "files:write"]]


async def test_somebody_who_is_there_logs_in_while_the_call_waits(tmp_path: Path) -> None:
    """AUT-3: the seam for clients that show addresses; steps up as well."""
    person = Agreeable()
    with guarded_server(tmp_path) as server:
        async with fleet(tmp_path, {"web": server.entry()}, logins=logins_of(tmp_path, person=person)) as running:
            read = (await running.call("mcp__web__read")).text
            write = (await running.call("mcp__web__write")).text

    assert (read, write) == ("read done", "write done")
    assert len(person.visited) == 2


async def test_clients_are_shown_a_page_only_where_nobody_else_logs_in(tmp_path: Path) -> None:
    by_itself = {"grant": "client_credentials", "client_id": "c", "client_secret": "s", "issuer": "https://a.example"}
    entries: dict[str, Any] = {
        "open": {"url": "https://m.example"},
        "own": {"url": "https://n.example", "oauth": by_itself},
    }
    open_to_all, own = load(tmp_path, entries).configs
    without, with_person = logins_of(tmp_path), logins_of(tmp_path, person=Agreeable())
    doors = [without.of(open_to_all), without.of(own), with_person.of(open_to_all)]

    assert [door is not None and door.needs_a_person for door in doors] == [True, False, False]


async def test_configured_client_scopes_and_port_are_what_is_asked_with(tmp_path: Path) -> None:
    """AUT-3, CFG-3."""
    keyring = MemoryKeyring()
    with guarded_server(tmp_path) as server:
        oauth = {
            "client_id": "static-client",
            "client_secret": "canary-static-client-secret",
            "scopes": "read files:write",
            "issuer": server.issuer,
        }
        config = load(tmp_path, {"web": server.entry(oauth=oauth)}).configs[0]
        assert isinstance(config.target, HttpEndpoint)
        logins = logins_of(tmp_path, keyring=keyring)
        login = await logins.load(config, config.target).log_in(Agreeable())
        asked = server.events("authorize")[0]["scopes"]
        registered = server.count("register")

    assert asked == ["read", "files:write"]
    assert (login.facts.client_id, login.facts.scope, registered) == ("static-client", "read files:write", 0)


async def test_logging_out_ends_the_login_here_and_there(tmp_path: Path) -> None:
    keyring = MemoryKeyring()
    with guarded_server(tmp_path) as server:
        await log_in(tmp_path, server, keyring=keyring)
        login = login_of(tmp_path, server.url, keyring=keyring)
        outcome = await login.log_out()
        token = await login.token()
        revoked = server.count("revoke")

    assert outcome == (True, "")
    assert (token, revoked, keyring.kept) == (None, 1, {})
    assert LoginStore(logins_of(tmp_path).state).all() == []
