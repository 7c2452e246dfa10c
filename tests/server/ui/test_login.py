"""How the owner gets in: a link that works once, and the session that it opens."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from starlette.types import Scope

from goat_mcp.server.ui import app, login, security
from goat_mcp.server.ui.login import LINK_LASTS_S, MAX_SESSIONS, SESSION_LASTS_S, LoginLinks, Sessions
from goat_mcp.state.directory import StateDirectory
from tests.server.ui.open_page import ORIGIN, open_page, page_parts, stranger

pytestmark = pytest.mark.anyio

OTHER = "http://127.0.0.1:9999"


def token_of(link: str) -> str:
    return link.partition("token=")[2]


async def test_a_link_opens_a_session_once(tmp_path: Path) -> None:
    parts = page_parts(tmp_path)
    link = parts.links.new()
    async with stranger(parts) as first, stranger(parts) as second:
        opened = await first.get(link)
        refused = await second.get(link)

        assert opened.status_code == 200
        assert 'http-equiv="refresh" content="0; url=/ui"' in opened.text
        assert (await first.get("/ui")).status_code == 200
        assert refused.status_code == 403
        assert "Run goat-mcp ui again" in refused.text
        assert (await second.get("/ui")).status_code == 401


async def test_the_cookie_is_for_the_page_alone(tmp_path: Path) -> None:
    parts = page_parts(tmp_path)
    async with stranger(parts) as client:
        cookie = (await client.get(parts.links.new())).headers["set-cookie"]

    name_and_value, *flags = cookie.split("; ")
    name, _, value = name_and_value.partition("=")
    assert name == "goat_mcp_ui_8765"
    assert len(value) == 43
    assert {flag.lower() for flag in flags} == {"httponly", "samesite=strict", "path=/ui", "max-age=43200"}


async def test_of_many_that_use_a_link_at_once_one_gets_in(tmp_path: Path) -> None:
    links = LoginLinks(StateDirectory(tmp_path), ORIGIN)
    token = token_of(links.new())

    with ThreadPoolExecutor(16) as threads:
        used = list(threads.map(links.use, [token] * 64))

    assert sum(link is not None for link in used) == 1


async def test_a_link_is_over_after_a_minute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    links = LoginLinks(StateDirectory(tmp_path), ORIGIN)
    token = token_of(links.new())
    made_at_s = login.time.time()

    monkeypatch.setattr(login.time, "time", lambda: made_at_s + LINK_LASTS_S + 1)

    assert not links.use(token)


async def test_a_link_is_for_one_page(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path)

    assert not LoginLinks(state, OTHER).use(token_of(LoginLinks(state, ORIGIN).new()))


@pytest.mark.parametrize("token", ["", "x", "x" * 43, "../../approvals.db", "x" * 100_000, "\udc80"])
async def test_a_made_up_token_is_refused(tmp_path: Path, token: str) -> None:
    links = LoginLinks(StateDirectory(tmp_path), ORIGIN)
    links.new()

    assert not links.use(token)


@pytest.mark.posix_only("files have modes there")
async def test_the_token_is_stored_as_a_hash_for_the_owner_alone(tmp_path: Path) -> None:
    token = token_of(LoginLinks(StateDirectory(tmp_path), ORIGIN).new())

    (file,) = (tmp_path / "ui_logins").iterdir()
    assert token not in file.name and token not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


async def test_links_that_nobody_opened_are_cleared_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    links = LoginLinks(StateDirectory(tmp_path), ORIGIN)
    links.new()
    made_at_s = login.time.time()
    monkeypatch.setattr(login.time, "time", lambda: made_at_s + LINK_LASTS_S + 5)

    links.new()

    assert len(list((tmp_path / "ui_logins").iterdir())) == 1


async def test_logins_that_fail_are_slowed_down_and_keep_nobody_out(tmp_path: Path) -> None:
    parts = page_parts(tmp_path)
    async with stranger(parts) as client:
        statuses = [(await client.get("/ui/login?token=wrong")).status_code for _ in range(30)]
        right = await client.get(parts.links.new())

    assert 403 in statuses and statuses[-1] == 429
    # A picture in a page of any site makes a browser fail here; the owner gets in all the same.
    assert right.status_code == 200


async def test_a_link_for_a_users_browser_and_its_session_are_of_no_use_to_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts, browsers_user = page_parts(tmp_path), 1001

    def user_of(scope: Scope) -> int:
        return browsers_user

    for module in (app, security):
        monkeypatch.setattr(module, "user_of", user_of)
    link = parts.links.new(1000)
    async with stranger(parts) as client:
        by_another = await client.get(link)
        browsers_user = 1000
        by_its_user = await client.get(link)
        page_of_its_user = await client.get("/ui")
        browsers_user = 1001
        page_by_another = await client.get("/ui")

    assert by_another.status_code == 403
    assert by_its_user.status_code == page_of_its_user.status_code == 200
    assert page_by_another.status_code == 401


async def test_a_link_that_is_printed_is_for_every_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def another(scope: Scope) -> int:
        return 1001

    parts = page_parts(tmp_path)
    monkeypatch.setattr(app, "user_of", another)
    async with stranger(parts) as client:
        assert (await client.get(parts.links.new())).status_code == 200


class Clock:
    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def test_a_session_ends_after_twelve_hours() -> None:
    clock = Clock()
    sessions = Sessions(clock)
    cookie = sessions.open()
    session = sessions.find(cookie)
    assert session is not None and session.is_open

    clock.now_s += SESSION_LASTS_S

    assert sessions.find(cookie) is None
    assert not session.is_open


def test_the_oldest_session_makes_room() -> None:
    sessions = Sessions()
    cookies = [sessions.open() for _ in range(MAX_SESSIONS + 1)]

    assert [sessions.find(cookie) is not None for cookie in cookies] == [False] + [True] * MAX_SESSIONS


async def test_who_logs_out_is_out(tmp_path: Path) -> None:
    async with open_page(tmp_path) as page:
        answer = await page.post("/ui/logout")

        assert answer.status_code == 200 and "You are logged out" in answer.text
        assert "csrf" not in answer.text
        assert (await page.client.get("/ui")).status_code == 401


async def test_a_cookie_of_another_port_opens_nothing(tmp_path: Path) -> None:
    async with open_page(tmp_path) as page:
        value = page.client.cookies["goat_mcp_ui_8765"]
        async with stranger(page.parts) as other:
            other.cookies.set("goat_mcp_ui_9999", value, path="/ui")
            assert (await other.get("/ui")).status_code == 401
