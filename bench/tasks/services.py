"""The five services and the fillers, each as an HTTP server of this process, so that checks read their state."""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import uvicorn

from bench.tasks.task import State
from bench.tasks.worlds.calendar import Calendar
from bench.tasks.worlds.documents import Documents
from bench.tasks.worlds.fillers import filler_server, filler_tools
from bench.tasks.worlds.issues import Issues
from bench.tasks.worlds.metrics import Metrics
from bench.tasks.worlds.shop import Shop
from bench.tasks.worlds.world import World

WORLDS: tuple[type[World], ...] = (Issues, Calendar, Documents, Shop, Metrics)


class Services:
    """All that a task can touch. `urls` by name of the server, `server_of` by name of a tool."""

    def __init__(self, tool_count: int) -> None:
        self.tool_count = tool_count
        self.worlds = [world() for world in WORLDS]
        self.urls: dict[str, str] = {}
        self.server_of = {tool.__name__: world.name for world in self.worlds for tool in world.tools}
        self.queries = {words.name: words.queries for world in self.worlds for words in world.words}

    def reset(self, is_large: bool) -> None:
        for world in self.worlds:
            world.reset(is_large)

    @property
    def state(self) -> State:
        return {name: part for world in self.worlds for name, part in world.state.items()}


@asynccontextmanager
async def serving(tool_count: int) -> AsyncGenerator[Services]:
    """Serve so many tools on free ports of this machine: twenty of them are real, the others fill the list."""
    services = Services(tool_count)
    apps: dict[str, Any] = {world.name: world.server().streamable_http_app() for world in services.worlds}
    fillers: dict[str, list[Any]] = {}
    for server, tool in filler_tools(tool_count - len(services.server_of)):
        fillers.setdefault(server, []).append(tool)
    apps.update({name: filler_server(name, tools).streamable_http_app() for name, tools in fillers.items()})
    servers: list[uvicorn.Server] = []
    async with anyio.create_task_group() as group:
        for name, app in apps.items():
            listener = socket.create_server(("127.0.0.1", 0))
            services.urls[name] = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
            server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1))
            server.install_signal_handlers = lambda: None  # pyright: ignore[reportAttributeAccessIssue]  # several in one process
            servers.append(server)
            group.start_soon(server.serve, [listener])
        while not all(server.started for server in servers):  # noqa: ASYNC110  # uvicorn has no event for it
            await anyio.sleep(0.05)
        try:
            yield services
        finally:
            for server in servers:
                server.should_exit = True


def entries(urls: Mapping[str, str]) -> dict[str, dict[str, object]]:
    """An `mcpServers` table."""
    return {name: {"url": url} for name, url in urls.items()}
