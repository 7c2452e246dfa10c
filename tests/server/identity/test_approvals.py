"""Deciding over HTTP: a person their own, an administrator everybody's, and no ordinary client's token anything."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import anyio.to_thread
import httpx2
import pytest

from goat_mcp.cli.approvals import approvals
from goat_mcp.cli.approve import decide_at
from goat_mcp.cli.remote_server import RemoteServer
from goat_mcp.core.errors import ToolError
from tests.openid_provider import OpenIdProvider, openid_provider
from tests.server.identity.guarded_goat import OPERATORS, GuardedGoat, guarded_goat

pytestmark = pytest.mark.anyio
AUDIENCE = "goat"


@pytest.fixture
def provider() -> Iterator[OpenIdProvider]:
    with openid_provider() as provider:
        yield provider


@pytest.fixture
async def goat(provider: OpenIdProvider, tmp_path: Path) -> AsyncGenerator[GuardedGoat]:
    identity = {
        "issuer": provider.issuer,
        "audience": [AUDIENCE],
        "tools": ["Bash", "TodoWrite"],
        "administrator_groups": ["Admins"],
    }
    rules = {"permissions": {"ask": ["Bash(echo *)"]}, "approval": {"wait_s": 0}}
    async with guarded_goat(tmp_path, identity, **rules) as goat:
        yield goat


@pytest.fixture
def tokens(provider: OpenIdProvider) -> dict[str, str]:
    """`ada` and `bob` are those of MCP clients; the others are for deciding."""
    decides: dict[str, Any] = {"scope": "openid goat:approve"}
    return {
        "ada": provider.token(AUDIENCE, sub="ada"),
        "bob": provider.token(AUDIENCE, sub="bob"),
        "ada decides": provider.token(AUDIENCE, sub="ada", **decides),
        "bob decides": provider.token(AUDIENCE, sub="bob", **decides),
        "admin": provider.token(AUDIENCE, sub="root", groups=["Admins"]),
        "admin decides": provider.token(AUDIENCE, sub="root", groups=["Admins"], **decides),
    }


async def asks(goat: GuardedGoat, token: str, text: str) -> dict[str, Any]:
    return await goat.call(token, "Bash", command=f"echo {text}")


async def ask(
    goat: GuardedGoat, token: str | None, method: str = "GET", path: str = "", body: Any = None
) -> httpx2.Response:
    headers = {"Content-Type": "application/json"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    content = None if body is None else json.dumps(body).encode()
    url = f"{goat.url.removesuffix('/mcp')}/approvals{path}"
    return await goat.http.request(method, url, headers=headers, content=content)


async def ids_for(goat: GuardedGoat, token: str) -> dict[str, str]:
    """Ids of what waits, by principal."""
    return {one["principal"]: one["id"] for one in (await ask(goat, token)).json()["waiting"]}


async def test_each_sees_and_decides_their_own(goat: GuardedGoat, tokens: dict[str, str]) -> None:
    for name in ("ada", "bob"):
        pending = await asks(goat, tokens[name], f"of-{name}")
        assert "E_APPROVAL_PENDING" in json.dumps(pending)
    seen = [await ids_for(goat, tokens[f"{name} decides"]) for name in ("ada", "bob")]
    adas, bobs = seen[0]["user:ada"], seen[1]["user:bob"]

    foreign = [
        await ask(goat, tokens["bob decides"], path=f"/{adas}"),
        await ask(goat, tokens["bob decides"], path=f"/{adas[:8]}"),
        await ask(goat, tokens["bob decides"], "POST", f"/{adas}", {"approve": True}),
        await ask(goat, tokens["bob decides"], "POST", f"/{adas}", {"approve": False}),
    ]
    unknown = await ask(goat, tokens["bob decides"], path=f"/{'f' * len(adas)}")
    own = await ask(goat, tokens["ada decides"], "POST", f"/{adas[:8]}", {"approve": True})
    twice = await ask(goat, tokens["ada decides"], "POST", f"/{adas}", {"approve": False})
    runs = [await asks(goat, tokens[name], f"of-{name}") for name in ("ada", "bob")]

    assert [list(one) for one in seen] == [["user:ada"], ["user:bob"]]
    assert [one.status_code for one in foreign] == [404] * 4
    assert foreign[0].json()["message"].replace(adas, "ID") == unknown.json()["message"].replace("f" * len(adas), "ID")
    assert (own.status_code, own.json()["outcome"]) == (200, "approved")
    assert (twice.status_code, twice.json()["decided_by"]) == (409, "user:ada")
    assert "of-ada" in runs[0]["content"][0]["text"] and not runs[0]["isError"]
    assert runs[1]["isError"]
    assert bobs in (await ids_for(goat, tokens["bob decides"])).values()


async def test_an_administrator_sees_and_decides_for_everybody(goat: GuardedGoat, tokens: dict[str, str]) -> None:
    for name in ("ada", "bob"):
        await asks(goat, tokens[name], f"of-{name}")
    ids = await ids_for(goat, tokens["admin decides"])

    approved = await ask(goat, tokens["admin decides"], "POST", f"/{ids['user:ada']}", {"approve": True})
    denied = await ask(
        goat, tokens["admin decides"], "POST", f"/{ids['user:bob']}", {"approve": False, "reason": "not here"}
    )
    runs = [await asks(goat, tokens[name], f"of-{name}") for name in ("ada", "bob")]
    listed = (await ask(goat, tokens["bob decides"])).json()

    assert set(ids) == {"user:ada", "user:bob"}
    assert [approved.json()["outcome"], denied.json()["outcome"]] == ["approved", "denied"]
    assert not runs[0]["isError"] and runs[1]["isError"]
    assert [(one["principal"], one["decided_by"]) for one in listed["decided"]] == [("user:bob", "user:root")]
    assert "of-ada" not in json.dumps(listed)


@pytest.mark.parametrize("name", ["ada", "admin", "operator", "nobody"])
async def test_a_clients_token_decides_nothing(goat: GuardedGoat, tokens: dict[str, str], name: str) -> None:
    await asks(goat, tokens["ada"], "of-ada")
    (id,) = (await ids_for(goat, tokens["ada decides"])).values()
    token = {"operator": OPERATORS, "nobody": None}.get(name, tokens.get(name))

    answers = [
        await ask(goat, token),
        await ask(goat, token, path=f"/{id}"),
        await ask(goat, token, "POST", f"/{id}", {"approve": True}),
        await ask(goat, token, "POST", "/page", {}),
    ]

    assert [one.status_code for one in answers] == [401 if name == "nobody" else 403] * 4
    assert (await asks(goat, tokens["ada"], "of-ada"))["isError"]


@pytest.mark.parametrize(
    "body", [{}, {"approve": "yes"}, {"approve": True, "command": "id"}, [], {"approve": True, "scope": "everything"}]
)
async def test_a_decision_that_says_something_else_is_refused(
    goat: GuardedGoat, tokens: dict[str, str], body: Any
) -> None:
    await asks(goat, tokens["ada"], "of-ada")
    (id,) = (await ids_for(goat, tokens["ada decides"])).values()

    answer = await ask(goat, tokens["ada decides"], "POST", f"/{id}", body)

    assert answer.status_code == 400
    assert (await asks(goat, tokens["ada"], "of-ada"))["isError"]


async def test_the_command_line_lists_and_decides_elsewhere(
    goat: GuardedGoat, tokens: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("ada", "bob"):
        await asks(goat, tokens[name], f"of-{name}")
    file = tmp_path / "token"
    file.write_text(tokens["admin decides"])
    file.chmod(0o600)
    ids = await ids_for(goat, tokens["admin decides"])

    def use() -> tuple[int, int, int]:
        shown: Any = approvals.callback
        listing = shown([], False, False, False, goat.url, file, False)
        server = RemoteServer(goat.url, file)
        done = decide_at(server, [ids["user:ada"]], {"approve": True}, False)
        again = decide_at(server, [ids["user:ada"]], {"approve": True}, False)
        return listing, done, again

    codes = await anyio.to_thread.run_sync(use)
    out = capsys.readouterr()

    assert codes == (0, 0, 5)
    assert "user:ada" in out.out and "user:bob" in out.out
    assert "was approved before, by user:root" in out.err
    assert tokens["admin decides"] not in out.out + out.err
    assert not (await asks(goat, tokens["ada"], "of-ada"))["isError"]


@pytest.mark.parametrize("url", ["http://mcp.example.com/mcp", "mcp.example.com", "ftp://127.0.0.1", ""])
def test_a_token_goes_over_tls_only(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOAT_MCP_TOKEN", "some-token")

    with pytest.raises(ToolError, match="is no https:// address"):
        RemoteServer(url, None)
