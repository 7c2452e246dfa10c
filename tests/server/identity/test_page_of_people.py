"""The page for people whom the provider knows: their own approvals, an administrator's view, nothing of the owner's."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from goat_mcp.gateway.approvals.viewer import Viewer
from goat_mcp.server.ui.app import VIEWS
from goat_mcp.server.ui.login import MAX_OF_OTHERS, LinkUser, LoginLinks, Sessions
from goat_mcp.server.ui.security import PageGuard, is_secure
from goat_mcp.state.directory import StateDirectory
from tests.openid_provider import OpenIdProvider, openid_provider
from tests.server.identity.guarded_goat import GuardedGoat, guarded_goat

pytestmark = pytest.mark.anyio
AUDIENCE = "goat"


@pytest.fixture
def provider() -> Iterator[OpenIdProvider]:
    with openid_provider() as provider:
        yield provider


@pytest.fixture
async def goat(provider: OpenIdProvider, tmp_path: Path) -> AsyncGenerator[GuardedGoat]:
    identity = {"issuer": provider.issuer, "audience": [AUDIENCE], "tools": ["Bash"], "administrators": ["root"]}
    rules = {"permissions": {"ask": ["Bash(echo *)"]}, "approval": {"wait_s": 0}}
    async with guarded_goat(tmp_path, identity, **rules) as goat:
        for name in ("ada", "bob"):
            await goat.call(provider.token(AUDIENCE, sub=name), "Bash", command=f"echo secret-of-{name}")
        yield goat


async def logged_in(goat: GuardedGoat, provider: OpenIdProvider, name: str) -> httpx2.AsyncClient:
    """Whoever has opened the link that their token got them."""
    token = provider.token(AUDIENCE, sub=name, scope="goat:approve")
    base = goat.url.removesuffix("/mcp")
    made = await goat.http.post(f"{base}/approvals/page", json={}, headers={"Authorization": f"Bearer {token}"})
    browser = httpx2.AsyncClient(base_url=base, timeout=60)
    opened = await browser.get(made.json()["url"])
    assert opened.status_code == 200, opened.text
    return browser


async def press(browser: httpx2.AsyncClient, id: str, what: str) -> httpx2.Response:
    csrf = re.search(r'name="csrf" value="([^"]+)"', (await browser.get("/ui")).text)
    form = {"csrf": csrf[1] if csrf else "", "scope": "once"}
    headers = {"Origin": str(browser.base_url).rstrip("/")}
    return await browser.post(f"/ui/approvals/{id}/{what}", data=form, headers=headers)


def ids_in(page: str) -> list[str]:
    return re.findall(r'id="a-([0-9a-zA-Z_-]+)"', page)


async def test_people_see_and_decide_their_own_alone(goat: GuardedGoat, provider: OpenIdProvider) -> None:
    ada, bob = await logged_in(goat, provider, "ada"), await logged_in(goat, provider, "bob")
    pages = [(await browser.get("/ui")).text for browser in (ada, bob)]
    (adas,), (bobs,) = (ids_in(page) for page in pages)

    foreign = [await press(bob, adas, "approve"), await press(bob, adas, "deny")]
    looked = (await bob.get(f"/ui?id={adas}")).text
    own = await press(ada, adas, "approve")
    after = (await ada.get(f"/ui?id={adas}")).text

    assert "secret-of-ada" in pages[0] and "secret-of-bob" not in pages[0]
    assert "secret-of-bob" in pages[1] and "secret-of-ada" not in pages[1] + looked
    assert [one.status_code for one in foreign] == [404, 404]
    assert own.status_code == 303
    assert "Approved" in after and "user:ada (page)" in after
    assert ids_in((await bob.get("/ui")).text) == [bobs]


async def test_an_administrator_sees_and_decides_for_everybody(goat: GuardedGoat, provider: OpenIdProvider) -> None:
    root = await logged_in(goat, provider, "root")
    page = (await root.get("/ui")).text

    done = [await press(root, id, "approve") for id in ids_in(page)]

    assert "secret-of-ada" in page and "secret-of-bob" in page and "user:ada" in page
    assert [one.status_code for one in done] == [303, 303]
    assert ids_in((await root.get("/ui")).text) == []


@pytest.mark.parametrize("name", ["ada", "root"])
async def test_the_other_views_are_for_whoever_runs_the_server(
    goat: GuardedGoat, provider: OpenIdProvider, name: str
) -> None:
    browser = await logged_in(goat, provider, name)
    csrf = re.search(r'name="csrf" value="([^"]+)"', (await browser.get("/ui")).text)
    form, headers = {"csrf": csrf[1] if csrf else ""}, {"Origin": str(browser.base_url).rstrip("/")}
    shown = (await browser.get("/ui")).text

    refused = [await browser.get(f"/ui/{view}") for view, _ in VIEWS[1:]]
    refused.append(await browser.post("/ui/rules/add", data={**form, "rule": "Bash"}, headers=headers))
    nothing = await browser.post("/ui/running/unknown/cancel", data=form, headers=headers)

    assert [one.status_code for one in refused] == [403] * len(VIEWS)
    assert nothing.status_code == 404
    assert all(f"/ui/{view}" not in shown for view, _ in VIEWS[1:])


def test_a_flood_of_logins_ends_its_own_sessions_alone() -> None:
    sessions = Sessions()
    owner = sessions.open(LinkUser())
    bob = sessions.open(LinkUser(viewer=Viewer("user:bob")))
    adas = [sessions.open(LinkUser(viewer=Viewer("user:ada"))) for _ in range(100)]

    assert sessions.find(owner) is not None and sessions.find(bob) is not None
    assert [cookie for cookie in adas if sessions.find(cookie) is not None] == adas[-MAX_OF_OTHERS:]


def test_a_link_says_who_opens_it_and_nothing_else(tmp_path: Path) -> None:
    links = LoginLinks(StateDirectory(tmp_path), "http://127.0.0.1:1", ["https://mcp.example.com"])
    public = LoginLinks(StateDirectory(tmp_path), "https://mcp.example.com")
    ada = Viewer("user:ada", sees_all=False)

    token = public.new(viewer=ada).rpartition("=")[2]
    found = links.use(token)

    assert found is not None and found.viewer == ada and not found.viewer.is_owner
    assert links.use(token) is None
    assert LoginLinks(StateDirectory(tmp_path), "https://other").use(public.new().rpartition("=")[2]) is None


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("mcp.example.com", "https://mcp.example.com", None),
        ("mcp.example.com", "http://mcp.example.com", 403),
        ("mcp.example.com", "https://evil.example.com", 403),
        ("127.0.0.1:1", "http://127.0.0.1:1", None),
        ("127.0.0.1:1", "https://127.0.0.1:1", 403),
        ("evil.example.com", "https://evil.example.com", 421),
    ],
)
def test_the_page_is_served_by_its_public_name_over_tls_alone(host: str, origin: str, status: int | None) -> None:
    async def app(*_: Any) -> None: ...

    guard = PageGuard(app, frozenset({"127.0.0.1:1"}), public_origin="https://mcp.example.com")
    headers = [(b"host", host.encode()), (b"origin", origin.encode())]

    refusal = guard.refusal("POST", headers)

    assert (refusal.status if refusal is not None else None) == status
    assert is_secure("https://mcp.example.com", {"headers": headers}) == (host == "mcp.example.com")
