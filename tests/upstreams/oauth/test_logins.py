"""Logins of HTTP upstreams, with a real authorization server: AUT-1, AUT-2, AUT-3."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.upstreams.fleet import fleet
from tests.upstreams.oauth.guarded_server import guarded_server, log_in, logins_of

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]


async def test_an_upstream_that_wants_a_login_says_so_and_names_the_command(tmp_path: Path) -> None:
    """AUT-3."""
    with guarded_server(tmp_path) as server:
        async with fleet(tmp_path, {"web": server.entry()}, logins=logins_of(tmp_path)) as running:
            status = running.status("web")

    assert (status.state, status.reason_code) == ("failed", "auth_required")


async def test_after_a_login_every_request_carries_our_token_and_calls_work(tmp_path: Path) -> None:
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
