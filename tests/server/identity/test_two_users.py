"""Two people whom the provider knows, over HTTP: every resource and store shows each their own alone (R-HTTP-3b)."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from goat_mcp.calls.permissions.mode import Mode
from tests.openid_provider import OpenIdProvider, openid_provider
from tests.server.identity.guarded_goat import ASKABLE, GuardedGoat, guarded_goat
from tests.server.test_two_principals import OWN, RESOURCES

pytestmark = pytest.mark.anyio
AUDIENCE = "https://mcp.example.com/mcp"
MARK = "belongs-to-ada"
FORM = {
    "questions": [
        {
            "question": "Which?",
            "header": "H",
            "options": [{"label": "one", "description": "1"}, {"label": "two", "description": "2"}],
            "multiSelect": False,
        }
    ]
}


@pytest.fixture
def provider() -> Iterator[OpenIdProvider]:
    with openid_provider() as provider:
        yield provider


@pytest.fixture
async def goat(provider: OpenIdProvider, tmp_path: Path) -> AsyncGenerator[GuardedGoat]:
    identity = {
        "issuer": provider.issuer,
        "resource": AUDIENCE,
        "tools": ["toolset:core", "toolset:state", "toolset:tasks"],
    }
    catalog = {"toolsets": ["core", "state", "tasks", "goa"]}
    async with guarded_goat(tmp_path, identity, catalog=catalog, files={"review_mode": True}) as goat:
        yield goat


@pytest.fixture
def ada(provider: OpenIdProvider) -> str:
    return provider.token(AUDIENCE, sub="ada")


@pytest.fixture
def bob(provider: OpenIdProvider) -> str:
    return provider.token(AUDIENCE, sub="Ada")


async def read(goat: GuardedGoat, token: str, uri: str) -> str | None:
    answer = (await goat.post(token, "resources/read", uri=uri)).json()
    return answer["result"]["contents"][0]["text"] if "result" in answer else None


async def everything(goat: GuardedGoat, token: str) -> dict[str, str]:
    """Leave something in every store. Returns URIs of it, each by the template that it fits."""
    root = goat.folder / "ws"
    goat.gateway.modes.choose("principal:user%3Aada:raw", Mode.PLAN)
    await goat.call(token, "ExitPlanMode", plan=f"# {MARK}")
    goat.gateway.modes.choose("principal:user%3Aada:raw", Mode.BYPASS)
    made = [
        await goat.call(token, "TodoWrite", todos=[{"content": MARK, "status": "pending", "activeForm": MARK}]),
        await goat.call(token, "Bash", command=f"echo {MARK}; sleep 60", run_in_background=True),
        await goat.call(token, "Bash", command=f"for n in $(seq 20000); do echo {MARK} $n; done"),
        await goat.call(token, "Write", file_path=f"{root}/staged.txt", content=MARK),
        await goat.call(token, "memento__note", action="write", name=MARK, content=MARK),
    ]
    assert not any(one["isError"] for one in made), made
    spilled = re.search(r"/spill/\S+/([A-Za-z0-9_-]+\.txt)", made[2]["content"][0]["text"])
    assert spilled is not None
    uris = {"goat://output/{name}": f"goat://output/{spilled[1]}"}
    for place, member, template in (
        ("goat://tasks", "tasks", "goat://tasks/{id}"),
        ("goat://plans", "plans", "goat://plans/{name}"),
        ("goat://review", "waiting", "goat://review/{id}"),
    ):
        entries = json.loads(await read(goat, token, place) or "{}")[member]
        uris[template] = next(entry["uri"] for entry in entries if "memory" not in entry.get("path", ""))
    return uris


async def test_every_resource_is_its_readers_own(goat: GuardedGoat, ada: str, bob: str) -> None:
    uris = await everything(goat, ada)
    listed = (await goat.post(bob, "resources/list")).json()["result"]["resources"]
    templates = (await goat.post(bob, "resources/templates/list")).json()["result"]["resourceTemplates"]
    names = {entry["uri"] for entry in listed} | {entry["uriTemplate"] for entry in templates}

    assert {name for name in names if name.startswith("goat://")} == set(RESOURCES)
    assert MARK not in json.dumps([listed, templates])
    for name in sorted(RESOURCES):
        uri = uris.get(name, name)
        foreign = await read(goat, bob, uri)
        assert MARK not in (foreign or ""), uri
        if RESOURCES[name] == OWN and uri != "goat://calls":  # of calls it holds ids and names alone
            assert MARK in (await read(goat, ada, uri) or ""), uri
        if RESOURCES[name] == OWN and name in uris:
            assert foreign is None, uri


async def test_tools_reach_nothing_of_somebody_else(goat: GuardedGoat, ada: str, bob: str) -> None:
    uris = await everything(goat, ada)
    task = uris["goat://tasks/{id}"].rsplit("/", 1)[1]
    spilled = next((goat.folder / "state" / "spill").rglob("*/*.txt"))
    plan = next((goat.folder / "state").rglob("plans/**/*.md"))

    answers = [
        await goat.call(bob, "TaskOutput", task_id=task, block=False),
        await goat.call(bob, "TaskStop", task_id=task),
        await goat.call(bob, "Read", file_path=str(spilled)),
        await goat.call(bob, "Read", file_path=str(plan)),
        await goat.call(bob, "Grep", pattern=MARK, path=str(spilled.parent)),
        await goat.call(bob, "Bash", command=f"cat {spilled} {plan}"),
        await goat.call(bob, "memento__note", action="list"),
        await goat.call(bob, "Config", setting="mode"),
    ]

    assert [answer["isError"] for answer in answers[:5]] == [True] * 5
    assert [
        answer for answer in answers if f"{MARK} 1" in json.dumps(answer) or f"# {MARK}" in json.dumps(answer)
    ] == []
    assert MARK not in json.dumps(answers[6])
    assert not (await goat.call(ada, "TaskOutput", task_id=task, block=False))["isError"]


async def test_an_answer_to_a_question_counts_from_who_was_asked(goat: GuardedGoat, ada: str, bob: str) -> None:
    asked = (await goat.post(ada, "tools/call", name="AskUserQuestion", arguments=FORM, _meta=ASKABLE)).json()["result"]
    assert asked["resultType"] == "input_required", asked
    key, request = next(iter(asked["inputRequests"].items()))
    field = next(iter(request["params"]["requestedSchema"]["properties"]))
    answer: dict[str, Any] = {
        "name": "AskUserQuestion",
        "_meta": ASKABLE,
        "arguments": FORM,
        "requestState": asked["requestState"],
        "inputResponses": {key: {"action": "accept", "content": {field: "one"}}},
    }

    foreign = (await goat.post(bob, "tools/call", **answer)).json()
    own = (await goat.post(ada, "tools/call", **answer)).json()
    again = (await goat.post(ada, "tools/call", **answer)).json()

    assert "error" in foreign and "one" not in json.dumps(foreign)
    assert "one" in json.dumps(own["result"]["content"]), own
    assert "result" not in again or again["result"].get("isError") or again["result"]["resultType"] != "complete"


async def test_a_session_is_unknown_to_everybody_else(goat: GuardedGoat, ada: str, bob: str) -> None:
    def headers(token: str, session: str = "") -> dict[str, str]:
        found = {
            "Authorization": f"Bearer {token}",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2025-11-25",
        }
        return {**found, "Mcp-Session-Id": session} if session else found

    async def post(token: str, session: str, body: dict[str, Any]) -> httpx2.Response:
        return await goat.http.post(goat.url, json={"jsonrpc": "2.0", **body}, headers=headers(token, session))

    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    opened = await post(ada, "", {"id": 0, "method": "initialize", "params": hello})
    session = opened.headers["mcp-session-id"]
    await post(ada, session, {"method": "notifications/initialized"})

    listing = {"id": 1, "method": "tools/list"}
    foreign = [
        await post(bob, session, listing),
        await goat.http.get(goat.url, headers=headers(bob, session)),
        await goat.http.delete(goat.url, headers=headers(bob, session)),
    ]

    assert [one.status_code for one in foreign] == [404] * 3
    assert (await post(ada, session, listing)).status_code == 200


async def test_a_renewed_token_is_the_same_person(goat: GuardedGoat, provider: OpenIdProvider, ada: str) -> None:
    await goat.call(ada, "TodoWrite", todos=[{"content": MARK, "status": "pending", "activeForm": MARK}])

    renewed = provider.token(AUDIENCE, sub="ada", jti="another", client_id="another-client")

    assert MARK in (await read(goat, renewed, "goat://todos") or "")
