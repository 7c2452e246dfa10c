"""A goat-mcp over HTTP in this process that accepts tokens of an OpenID provider."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx2

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.adapter import Adapter
from goat_mcp.server.http.page import MountedPage
from goat_mcp.server.http.server import HttpServer, parse_address
from goat_mcp.settings.settings import settings_of
from goat_mcp.state.directory import StateDirectory

OPERATORS = "operators-token-0123456789-0123456789-01"
ASKABLE: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
}
"""The `_meta` of a client that shows forms."""
_META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
}


@dataclass(frozen=True)
class GuardedGoat:
    gateway: Gateway
    http: httpx2.AsyncClient
    url: str
    folder: Path

    async def post(
        self, token: str | None, method: str = "tools/list", path: str = "", /, **params: Any
    ) -> httpx2.Response:
        headers = {
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": method,
        }
        if name := params.get("name", params.get("uri")):
            headers["Mcp-Name"] = name
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": _META, **params}}
        return await self.http.post(self.url + path, json=body, headers=headers)

    async def call(self, token: str, name: str, /, **arguments: Any) -> dict[str, Any]:
        answer = await self.post(token, "tools/call", name=name, arguments=arguments)
        assert answer.status_code == 200, answer.text
        result: dict[str, Any] = answer.json()["result"]
        return result

    def files(self) -> str:
        """Whatever was written to the state directory."""
        return "".join(
            file.read_bytes().decode("latin-1") for file in (self.folder / "state").rglob("*") if file.is_file()
        )


@asynccontextmanager
async def guarded_goat(folder: Path, identity: Mapping[str, Any], **settings: Any) -> AsyncGenerator[GuardedGoat]:
    (folder / "ws").mkdir(exist_ok=True)
    chosen = settings_of(
        {"workspace": [str(folder / "ws")], "mode": "bypassPermissions", "identity": identity, **settings}, "the test"
    )
    state = StateDirectory(folder / "state")
    gateway = Gateway(chosen, approval=Approval.ELICIT, state=state, serves_http=True)
    adapter = Adapter(gateway, "http")
    async with gateway.running(), anyio.create_task_group() as group:
        await group.start(adapter.run)
        page = MountedPage(gateway)
        server = HttpServer(
            adapter, parse_address("127.0.0.1:0"), OPERATORS, chosen.limits, page=page, identity=chosen.identity
        )
        server.bind()
        listening = anyio.Event()
        urls: list[str] = []

        def listens(url: str) -> None:
            urls.append(url)
            listening.set()

        group.start_soon(server.serve, listens)
        with anyio.fail_after(60):
            await listening.wait()
        async with httpx2.AsyncClient(timeout=60) as http:
            yield GuardedGoat(gateway, http, urls[0], folder)
        server.stop()
        group.cancel_scope.cancel()
