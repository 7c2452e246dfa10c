"""A goat-mcp before a server that wants a login, and people at its clients who open the pages they are shown."""

from __future__ import annotations

import http.client
import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import anyio.to_thread
import httpx2
import mcp_types as types
from mcp import Client
from mcp.client.context import ClientRequestContext
from mcp.client.streamable_http import streamable_http_client

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.adapter import Adapter
from goat_mcp.server.http.server import HttpServer, parse_address
from goat_mcp.settings.settings import settings_of
from goat_mcp.state.directory import StateDirectory
from tests.e2e.conftest import upstream_file
from tests.upstreams.fleet import warm
from tests.upstreams.oauth.guarded_server import Guarded, where_it_ends

OPERATORS = "operators-token-0123456789-0123456789-01"
NARROW = "narrowed-token-0123456789-0123456789-012"
TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("read", "write")]


def visit(url: str) -> str:
    """What a browser is shown at the end that opens the address of a login page."""
    return open_page(where_it_ends(url))


def open_page(url: str) -> str:
    page = urlsplit(url)
    connection = http.client.HTTPConnection(page.netloc, timeout=20)
    try:
        connection.request("GET", f"{page.path}?{page.query}")
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def comes_back_to(url: str) -> int:
    """The port that the login page at this address sends a browser to."""
    port = urlsplit(parse_qs(urlsplit(url).query)["redirect_uri"][0]).port
    assert port is not None
    return port


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


async def until_closed(port: int) -> None:
    with anyio.fail_after(60):
        while await anyio.to_thread.run_sync(listens, port):  # noqa: ASYNC110  # what is waited for is a socket's end
            await anyio.sleep(0.02)


@dataclass(eq=False)
class User:
    """Whoever sits at a client. Where `goes`, the browser is back before the client's answer."""

    action: str = "accept"
    goes: bool = True
    shown: list[types.ElicitRequestURLParams] = field(default_factory=list[types.ElicitRequestURLParams])
    was_shown: anyio.Event = field(default_factory=anyio.Event)
    told: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list[tuple[str, Mapping[str, Any]]])
    answers: anyio.Event | None = None
    """Waited for before an answer is given."""

    async def elicited(self, context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        assert isinstance(params, types.ElicitRequestURLParams)
        self.shown.append(params)
        self.was_shown.set()
        if self.answers is not None:
            await self.answers.wait()
        if self.action == "accept" and self.goes:
            await anyio.to_thread.run_sync(visit, params.url)
        return types.ElicitResult.model_validate({"action": self.action})

    async def heard(self, message: Any) -> None:
        if isinstance(message, types.ElicitCompleteNotification):
            self.told.append((message.method, message.params.model_dump(by_alias=True, exclude_none=True)))

    @property
    def callbacks(self) -> dict[str, Any]:
        return {"elicitation_callback": self.elicited, "message_handler": self.heard}


@dataclass(frozen=True)
class Goat:
    """A goat-mcp in this process, over HTTP or to be talked to directly as over stdio."""

    gateway: Gateway
    adapter: Adapter
    folder: Path
    url: str

    @asynccontextmanager
    async def client(
        self, mode: str, user: User | None = None, *, token: str = OPERATORS, name: str = "c", **more: Any
    ) -> AsyncGenerator[Client]:
        options: dict[str, Any] = {
            **(user.callbacks if user is not None else {}),
            "mode": mode,
            "client_info": types.Implementation(name=name, version="1"),
            "read_timeout_seconds": 60,
            **more,
        }
        async with AsyncExitStack() as stack:
            target: Any = self.adapter.server
            if self.url:
                headers = {"Authorization": f"Bearer {token}"}
                http = await stack.enter_async_context(httpx2.AsyncClient(headers=headers, timeout=60))
                target = streamable_http_client(self.url, http_client=http)
            yield await stack.enter_async_context(Client(target, **options))

    def audit(self) -> str:
        return "".join(file.read_text() for file in (self.folder / "state").rglob("audit*.jsonl"))


@asynccontextmanager
async def goat_before(
    server: Guarded, folder: Path, *, transport: str = "stdio", knows_tools: bool = True, **entry: Any
) -> AsyncGenerator[Goat]:
    """It has listed the server's tools in an earlier run, and has no login any more."""
    entries = {"web": server.entry(**entry)}
    if knows_tools:
        warm(folder, entries, {"web": TOOLS}, "2026-07-28")
    settings = settings_of(
        {
            "workspace": [str(folder)],
            "mode": "bypassPermissions",
            "upstreams": [str(upstream_file(folder / "upstreams.json", **entries))],
            "profiles": {"narrow": {}},
        },
        "the test",
    )
    gateway = Gateway(settings, approval=Approval.HOST, state=StateDirectory(folder / "state"))
    adapter = Adapter(gateway, "http" if transport == "http" else "stdio")
    async with gateway.running(), anyio.create_task_group() as group:
        await group.start(adapter.run)
        if transport == "http":
            listening = anyio.Event()
            urls: list[str] = []

            def listens(url: str) -> None:
                urls.append(url)
                listening.set()

            running = HttpServer(adapter, parse_address("127.0.0.1:0"), OPERATORS, settings.limits, {"narrow": NARROW})
            running.bind()
            group.start_soon(running.serve, listens)
            with anyio.fail_after(60):
                await listening.wait()
            yield Goat(gateway, adapter, folder, urls[0])
            running.stop()
        else:
            yield Goat(gateway, adapter, folder, "")
        group.cancel_scope.cancel()


def facts_of(result: types.CallToolResult) -> dict[str, Any]:
    """What a failed call says of itself, for programs."""
    assert result.is_error, result
    content: dict[str, Any] | None = result.structured_content
    assert content is not None
    return content


def text_of(result: types.CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text
