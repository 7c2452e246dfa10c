"""Two principals on one HTTP server: what belongs to one looks to the other as if it did not exist (R-HTTP-3)."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp.server.auth.provider import AccessToken

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.adapter import Adapter
from goat_mcp.server.http import server as http
from goat_mcp.server.http.server import HttpServer, parse_address
from goat_mcp.settings.settings import settings_of
from goat_mcp.state.directory import StateDirectory

pytestmark = pytest.mark.anyio

HANDSHAKE, STATELESS = "2025-11-25", "2026-07-28"


class TwoTokens(http.StaticToken):
    """Knows two principals, where the real one knows the operator."""

    async def verify_token(self, token: str) -> AccessToken | None:
        if token not in ("token-of-a", "token-of-b"):
            return None
        principal = token[-1]
        return AccessToken(token=token, client_id=principal, subject=principal, scopes=[])


@dataclass(frozen=True)
class Client:
    """One principal's HTTP client. Both call themselves by the same client name."""

    http: httpx2.AsyncClient
    url: str
    principal: str

    async def post(self, version: str, session_id: str, body: dict[str, Any]) -> httpx2.Response:
        headers = {
            "Authorization": f"Bearer token-of-{self.principal}",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": version,
        }
        if session_id:
            headers["Mcp-Session-Id"] = session_id
        if version == STATELESS:
            headers |= {"Mcp-Method": body["method"], "Mcp-Name": body["params"]["name"]}
        return await self.http.post(self.url, json={"jsonrpc": "2.0", **body}, headers=headers)

    async def open_session(self) -> str:
        params: dict[str, Any] = {
            "protocolVersion": HANDSHAKE,
            "capabilities": {},
            "clientInfo": {"name": "same", "version": "1"},
        }
        opened = await self.post(HANDSHAKE, "", {"id": 1, "method": "initialize", "params": params})
        session_id = opened.headers["mcp-session-id"]
        await self.post(HANDSHAKE, session_id, {"method": "notifications/initialized"})
        return session_id

    async def call(self, version: str, session_id: str, name: str, arguments: dict[str, Any]) -> httpx2.Response:
        meta = {
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "same", "version": "1"},
        }
        params = {"name": name, "arguments": arguments, **({"_meta": meta} if version == STATELESS else {})}
        return await self.post(version, session_id, {"id": 2, "method": "tools/call", "params": params})


def code_of(answer: httpx2.Response) -> str:
    """The error code of a tool call's result, or nothing."""
    text = answer.text
    if text.startswith(("event:", ":", "data:", "id:", "retry:")):
        text = [line[5:] for line in text.splitlines() if line.startswith("data:") and line[5:].strip()][-1]
    result = json.loads(text)["result"]
    return result["content"][0]["text"].rsplit("[", 1)[1].rstrip("]") if result["isError"] else ""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    workspace = tmp_path / "ws"
    workspace.mkdir()
    (workspace / "f").write_text("old\n")
    return workspace


@asynccontextmanager
async def serving(
    folder: Path, monkeypatch: pytest.MonkeyPatch, mode: str = "bypassPermissions"
) -> AsyncGenerator[tuple[Client, Client]]:
    monkeypatch.setattr(http, "StaticToken", TwoTokens)
    settings = settings_of({"workspace": [str(folder)], "mode": mode, "approval": {"wait_s": 0}}, "the test")
    gateway = Gateway(settings, approval=Approval.ELICIT, state=StateDirectory(folder.parent / "state"))
    listening = anyio.Event()
    urls: list[str] = []

    def listens(url: str) -> None:
        urls.append(url)
        listening.set()

    async with gateway.running(), httpx2.AsyncClient(timeout=30) as client, anyio.create_task_group() as group:
        server = HttpServer(Adapter(gateway, "http"), parse_address("127.0.0.1:0"), "unused", settings.limits)
        server.bind()
        group.start_soon(server.serve, listens)
        with anyio.fail_after(60):
            await listening.wait()
        yield Client(client, urls[0], "a"), Client(client, urls[0], "b")
        server.stop()


async def test_ht_18_another_principals_session_is_unknown(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(folder, monkeypatch) as (a, b):
        session_id = await a.open_session()

        foreign = await b.call(HANDSHAKE, session_id, "Glob", {"pattern": "*"})
        nobodys = await b.call(HANDSHAKE, "0" * 32, "Glob", {"pattern": "*"})
        own = await a.call(HANDSHAKE, session_id, "Glob", {"pattern": "*"})

    assert (foreign.status_code, foreign.text) == (nobodys.status_code, nobodys.text)
    assert foreign.status_code == 404
    assert code_of(own) == ""


async def test_ht_18_a_session_id_gives_no_stateless_request_what_the_session_has(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state here is what a client has read: without it no file is changed."""
    edit = {"file_path": f"{folder}/f", "old_string": "old", "new_string": "new"}
    async with serving(folder, monkeypatch) as (a, b):
        session_id = await a.open_session()
        assert code_of(await a.call(HANDSHAKE, session_id, "Read", {"file_path": f"{folder}/f"})) == ""

        stolen = [code_of(await thief.call(STATELESS, session_id, "Edit", edit)) for thief in (b, a)]
        own = code_of(await a.call(HANDSHAKE, session_id, "Edit", edit))

    assert stolen == ["E_NOT_READ", "E_NOT_READ"]
    assert own == ""
    assert (folder / "f").read_text() == "new\n"


async def test_clients_of_one_name_share_nothing_across_principals(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit = {"file_path": f"{folder}/f", "old_string": "old", "new_string": "new"}
    async with serving(folder, monkeypatch) as (a, b):
        read = code_of(await a.call(STATELESS, "", "Read", {"file_path": f"{folder}/f"}))

        codes = [code_of(await client.call(STATELESS, "", "Edit", edit)) for client in (b, a)]

    assert (read, codes) == ("", ["E_NOT_READ", ""])


@pytest.mark.parametrize("version", [HANDSHAKE, STATELESS])
async def test_f13_02_http_a_plan_is_its_presenters_and_so_is_the_approval(
    folder: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    """A presents a plan; a person approves it with the command line; B, with the same plan, gains nothing by it."""
    new = {"file_path": f"{folder}/new", "content": "x"}
    async with serving(folder, monkeypatch, "plan") as (a, b):
        sessions = {one.principal: await one.open_session() if version == HANDSHAKE else "" for one in (a, b)}

        async def read(client: Client, uri: str) -> str:
            meta = {
                "io.modelcontextprotocol/protocolVersion": version,
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": {"name": "same", "version": "1"},
            }
            params = {"uri": uri, "name": uri, **({"_meta": meta} if version == STATELESS else {})}
            body = {"id": 3, "method": "resources/read", "params": params}
            return (await client.post(version, sessions[client.principal], body)).text

        async def call(client: Client, name: str, **arguments: Any) -> str:
            return (await client.call(version, sessions[client.principal], name, arguments)).text

        await call(a, "ExitPlanMode", plan="# Alpha")
        (record,) = (folder.parent / "state" / "plans").rglob("*.json")
        listed = [record.stem in await read(client, "goat://plans") for client in (a, b)]
        shown = ["# Alpha" in await read(client, f"goat://plans/{record.stem}") for client in (a, b)]
        record.write_text(json.dumps({**json.loads(record.read_text()), "status": "approved"}))
        taken = [await call(b, "ExitPlanMode"), await call(b, "ExitPlanMode", plan="# Alpha")]
        written = [await call(client, "Write", **new) for client in (b, a)]

    assert (listed, shown) == ([True, False], [True, False])
    assert not any("The plan was approved" in text for text in taken)
    assert ["E_PLAN_MODE" in text for text in written] == [True, False]
