"""The page as its owner has it open, without a server: for tests of views and of the login."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx

from goat_mcp.calls.approvals.record import Choice, Kind, Request
from goat_mcp.calls.approvals.store import ApprovalStore
from goat_mcp.gateway.approvals.queue import ApprovalQueue
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.ui.app import ui_app
from goat_mcp.server.ui.parts import UiParts
from goat_mcp.state.directory import StateDirectory

HOST = "127.0.0.1:8765"
ORIGIN = f"http://{HOST}"


async def no_gateway() -> Gateway:
    raise AssertionError("this view needs no gateway")


def page_parts(state: Path, **changes: Any) -> UiParts:
    directory = StateDirectory(state)
    queue = ApprovalQueue(directory, ApprovalStore(directory))
    return replace(UiParts(directory, queue, ORIGIN, no_gateway), **changes)


def request_for(title: str = "Bash: git push", **changes: Any) -> Request:
    choices = (Choice("once", "Allow once"), Choice("session", "Allow for this session", ("Bash(git push)",)))
    asked = Request(Kind.CALL, title, title, "", tool="Bash", client="editor", risk="high", choices=choices)
    return replace(asked, **{"expires_at_s": 4e9, **changes})


@dataclass
class OpenPage:
    """`client` has logged in. `post` sends a form as the page does."""

    parts: UiParts
    client: httpx.AsyncClient

    async def csrf(self, path: str = "/ui") -> str:
        found = re.search(r'name="csrf" value="([^"]+)"', (await self.client.get(path)).text)
        assert found is not None
        return found[1]

    async def post(self, path: str, headers: dict[str, str] | None = None, **fields: str) -> httpx.Response:
        form = {"csrf": await self.csrf(), **fields}
        return await self.client.post(
            path,
            content=urlencode(form),
            headers={"content-type": "application/x-www-form-urlencoded", "origin": ORIGIN, **(headers or {})},
        )


@asynccontextmanager
async def stranger(parts: UiParts) -> AsyncGenerator[httpx.AsyncClient]:
    """A browser that has not logged in."""
    transport = httpx.ASGITransport(ui_app(parts, frozenset({HOST})))
    async with httpx.AsyncClient(transport=transport, base_url=ORIGIN) as client:
        yield client


@asynccontextmanager
async def open_page(state: Path, make: Callable[..., UiParts] = page_parts, **changes: Any) -> AsyncGenerator[OpenPage]:
    parts = make(state, **changes)
    async with stranger(parts) as client:
        assert (await client.get(parts.links.new())).status_code == 200
        yield OpenPage(parts, client)
