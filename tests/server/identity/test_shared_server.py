"""A server of several people: built-in tools are off unless named, and each works in a directory of its own."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from goat_mcp.catalog.builtin_contracts import builtin_contracts
from goat_mcp.core.errors import ToolError
from goat_mcp.files.workspace.personal_roots import directory_name
from goat_mcp.gateway.status.shared_server import shared_server_lines
from goat_mcp.settings.settings import settings_of
from tests.openid_provider import OpenIdProvider, openid_provider
from tests.server.identity.guarded_goat import OPERATORS, GuardedGoat, guarded_goat

pytestmark = pytest.mark.anyio
AUDIENCE = "https://mcp.example.com/mcp"


@pytest.fixture
def provider() -> Iterator[OpenIdProvider]:
    with openid_provider() as provider:
        yield provider


def identity(provider: OpenIdProvider, **more: Any) -> dict[str, Any]:
    return {"issuer": provider.issuer, "resource": AUDIENCE, **more}


async def names_for(goat: GuardedGoat, token: str) -> set[str]:
    return {tool["name"] for tool in (await goat.post(token)).json()["result"]["tools"]}


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ((), set[str]()),
        (("TodoWrite", "Read"), {"TodoWrite", "Read"}),
        (("preset:read_only",), {"Read", "Glob", "Grep"}),
    ],
)
async def test_built_in_tools_are_off_unless_they_are_named(
    provider: OpenIdProvider, tmp_path: Path, named: tuple[str, ...], expected: set[str]
) -> None:
    ours = {spec.name for spec in builtin_contracts()}
    async with guarded_goat(tmp_path, identity(provider, tools=named)) as goat:
        token = provider.token(AUDIENCE)
        seen = [await names_for(goat, one) & ours for one in (token, OPERATORS)]
        answer = await goat.post(token, "tools/call", name="Bash", arguments={"command": "id"})

    assert expected <= seen[0] and seen[0] == seen[1]
    assert seen[0] == expected or named == ("preset:read_only",)
    assert "Bash" not in seen[0]
    assert "uid=" not in answer.text and "E_TOOL_NOT_IN_CATALOG" in answer.text


def test_the_start_says_what_is_on() -> None:
    issuer = "https://login.example.com"
    some = {"issuer": issuer, "tools": ["Read"], "workspace": "per_principal", "administrator_groups": ["Admins"]}

    none = list(shared_server_lines(settings_of({"identity": {"issuer": issuer}}, "the test")))

    assert none[1].startswith("built-in tools over HTTP: none (identity.tools names those that are on); all work in")
    assert list(shared_server_lines(settings_of({"identity": some}, "the test"))) == [
        f"tokens of {issuer} are accepted",
        "built-in tools over HTTP: Read; each principal has a directory of its own, and commands run in a sandbox only",
        "administrators: group Admins",
    ]
    assert shared_server_lines(settings_of({}, "the test")) == ()
    with pytest.raises(ToolError, match=r"identity\.tools"):
        shared_server_lines(settings_of({"identity": {"issuer": issuer, "tools": ["Raed"]}}, "the test"))


@pytest.fixture
async def goat(provider: OpenIdProvider, tmp_path: Path) -> AsyncGenerator[GuardedGoat]:
    own = identity(provider, tools=["toolset:core"], workspace="per_principal")
    async with guarded_goat(tmp_path, own, files={"read_before_write": "off"}) as goat:
        yield goat


async def test_each_principal_works_in_its_own_directory(goat: GuardedGoat, provider: OpenIdProvider) -> None:
    shared = goat.folder / "ws"
    ada, bob = (provider.token(AUDIENCE, sub=sub) for sub in ("ada", "bob"))
    adas, bobs = (shared / directory_name(f"user:{name}") for name in ("ada", "bob"))

    written = await goat.call(ada, "Write", file_path="@/note.txt", content="ada's secret")
    foreign = [
        await goat.call(bob, "Read", file_path=f"{adas}/note.txt"),
        await goat.call(bob, "Read", file_path=f"@/../{adas.name}/note.txt"),
        await goat.call(bob, "Write", file_path=f"{adas}/other.txt", content="bob was here"),
        await goat.call(bob, "Edit", file_path=f"{adas}/note.txt", old_string="secret", new_string="x"),
        await goat.call(bob, "Grep", pattern="secret", path=str(adas)),
        await goat.call(bob, "Grep", pattern="secret", path=str(shared)),
        await goat.call(bob, "Glob", pattern="**/*", path=str(shared)),
        await goat.call(bob, "Bash", command=f"cat {adas}/note.txt; ls {shared} {adas}"),
        await goat.call(bob, "Bash", command="pwd", workdir=str(adas)),
        await goat.call(bob, "Bash", command="cat link/note.txt; cp -r link copied"),
        await goat.call(bob, "NotebookEdit", notebook_path=f"{adas}/n.ipynb", new_source="x", cell_id="1"),
    ]
    own = [
        await goat.call(bob, "Glob", pattern="**/*"),
        await goat.call(bob, "Grep", pattern="secret"),
        await goat.call(ada, "Read", file_path="@/note.txt"),
        await goat.call(ada, "Grep", pattern="secret", output_mode="content"),
        await goat.call(ada, "Read", file_path=f"{adas}/note.txt"),
    ]

    assert not written["isError"], written
    assert (adas / "note.txt").read_text() == "ada's secret"
    assert sorted(entry.name for entry in adas.iterdir()) == ["note.txt"]
    assert {adas.stat().st_mode & 0o777, bobs.stat().st_mode & 0o777} == {0o700}
    for answer in (*foreign, *own[:2]):
        assert "ada's secret" not in json.dumps(answer)
    for answer in (*foreign[:7], foreign[8], foreign[10]):
        assert answer["isError"], answer
    assert ["ada's secret" in json.dumps(answer) for answer in own[2:]] == [True] * 3


async def test_commands_run_in_a_sandbox_or_not_at_all(goat: GuardedGoat, provider: OpenIdProvider) -> None:
    shared = goat.folder / "ws"
    ada, bob = (provider.token(AUDIENCE, sub=sub) for sub in ("ada", "bob"))
    await goat.call(ada, "Write", file_path="@/note.txt", content="ada's secret")
    (shared / directory_name("user:ada") / "note.txt").chmod(0o644)

    answer = await goat.call(bob, "Bash", command=f"echo begun; cat {shared}/*/note.txt; touch mine; ls")

    sandbox = await goat.gateway.services.sandbox().state("s", "user:bob")
    assert sandbox.wanted == "required"
    text = json.dumps(answer)
    if sandbox.name == "none":
        assert answer["isError"] and "E_SANDBOX" in text and "begun" not in text
    else:
        assert "begun" in text and "mine" in text and "secret" not in text


async def test_the_operator_works_in_the_directory_that_holds_all(goat: GuardedGoat, provider: OpenIdProvider) -> None:
    await goat.call(provider.token(AUDIENCE), "Write", file_path="@/note.txt", content="ada's secret")

    answer = await goat.call(OPERATORS, "Grep", pattern="secret", output_mode="content")

    assert "ada's secret" in json.dumps(answer)


async def test_a_principal_that_asks_for_much_does_not_hold_up_another(
    provider: OpenIdProvider, tmp_path: Path
) -> None:
    limits = {"concurrent_calls": 3, "concurrent_calls_in_all": 4, "calls_per_s": 0, "sessions": 8}
    ada, bob = (provider.token(AUDIENCE, sub=sub) for sub in ("ada", "bob"))
    async with (
        guarded_goat(tmp_path, identity(provider, tools=["Bash", "TodoWrite"]), limits=limits) as goat,
        anyio.create_task_group() as group,
    ):
        for _ in range(40):
            group.start_soon(partial(goat.call, ada, "Bash", command="sleep 300", timeout=600_000))
        with anyio.fail_after(60):
            while len(goat.gateway.pipeline.slots.permits) < limits["concurrent_calls"]:  # noqa: ASYNC110
                await anyio.sleep(0.01)
            answers = [await goat.call(bob, "TodoWrite", todos=[]) for _ in range(20)]

        assert not any(answer["isError"] for answer in answers)
        assert {permit.ctx.principal for permit in goat.gateway.pipeline.slots.permits} == {"user:ada"}
        group.cancel_scope.cancel()


async def test_sessions_of_one_principal_leave_room_for_another(provider: OpenIdProvider, tmp_path: Path) -> None:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}
    async with guarded_goat(tmp_path, identity(provider), limits={"sessions": 8, "calls_per_s": 0}) as goat:

        async def opened(sub: str) -> tuple[int, str]:
            headers = {
                "Authorization": f"Bearer {provider.token(AUDIENCE, sub=sub)}",
                "Accept": "application/json, text/event-stream",
            }
            answer = await goat.http.post(goat.url, json=body, headers=headers)
            return answer.status_code, answer.headers.get("mcp-session-id", "")

        bobs = await opened("bob")
        adas = [await opened("ada") for _ in range(30)]
        again = await opened("bob")
        headers = {
            "Authorization": f"Bearer {provider.token(AUDIENCE, sub='bob')}",
            "Accept": "application/json, text/event-stream",
            "Mcp-Session-Id": bobs[1],
        }
        ping = await goat.http.post(goat.url, json={"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers=headers)

    assert {status for status, _ in (bobs, again, *adas)} == {200}
    assert ping.status_code == 200  # the flood has ended sessions of its own sender alone


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"workspace": []}, "there are 0"),
        ({"sandbox": "off"}, "needs the sandbox"),
    ],
)
async def test_what_would_not_keep_them_apart_is_refused_at_the_start(
    provider: OpenIdProvider, tmp_path: Path, settings: dict[str, Any], why: str
) -> None:
    own = identity(provider, workspace="per_principal")

    with pytest.raises(ToolError, match=why):
        async with guarded_goat(tmp_path, own, **settings):
            pass
