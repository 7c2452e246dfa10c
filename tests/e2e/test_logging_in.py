"""A login by URL elicitation against the real program, over both transports, with a client in both eras: AUT-3."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.conftest import UNASKED, fill, upstream_file
from tests.e2e.goat import Launch, connected, http_goat
from tests.server.logging_in import TOOLS, User, comes_back_to, text_of, until_closed
from tests.upstreams.fleet import warm
from tests.upstreams.oauth.guarded_server import guarded_server

pytestmark = [pytest.mark.anyio, pytest.mark.e2e, pytest.mark.matrix]


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_login_at_the_page_that_the_client_shows_is_the_programs_from_then_on(
    tmp_path: Path, transport: str, mode: str
) -> None:
    user, nobody = User(), User(action="decline")
    with guarded_server(tmp_path) as server:
        entries = {"web": server.entry()}
        warm(tmp_path, entries, {"web": TOOLS}, "2026-07-28")
        file = upstream_file(tmp_path / "upstreams.json", **entries)
        no_keyring = {"PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring"}
        options = (*UNASKED, "--upstreams", str(file))
        launch = Launch(tmp_path, fill(tmp_path / "workspace"), options, no_keyring)
        if transport == "stdio":
            async with connected(launch, mode, **user.callbacks) as client:
                first = text_of(await client.call_tool("mcp__web__read", {}))
        else:
            with http_goat(launch) as goat:
                async with connected(goat, mode, **user.callbacks) as client:
                    first = text_of(await client.call_tool("mcp__web__read", {}))
        await until_closed(comes_back_to(user.shown[0].url))
        async with connected(launch, mode, **nobody.callbacks) as client:
            later = text_of(await client.call_tool("mcp__web__read", {}))
        logins = server.count("login")

    assert (first, later) == ("read done", "read done")
    assert (len(user.shown), nobody.shown, logins) == (1, [], 1)
