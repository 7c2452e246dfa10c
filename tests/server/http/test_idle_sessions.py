"""A session of the handshake era ends when nobody has used it for a while (R-HTTP-4b)."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from starlette.types import Message, Receive, Scope, Send

from goat_mcp.server.http.principal_limits import FairShares
from goat_mcp.server.http.sessions import PrincipalSessions
from goat_mcp.server.http.stream_events import StreamEvents

pytestmark = pytest.mark.anyio
IDLE_S = 0.2


class Sdk:
    """Opens one session, and notes when it is deleted. A request to `/slow` lasts until `release` is set."""

    def __init__(self) -> None:
        self.deleted = anyio.Event()
        self.release = anyio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "DELETE":
            self.deleted.set()
        if scope["path"] == "/slow":
            await self.release.wait()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"mcp-session-id", b"s1")]})


async def request(sessions: PrincipalSessions, *, path: str = "/mcp", session_id: bytes | None = b"s1") -> None:
    headers = [(b"mcp-session-id", session_id)] if session_id is not None else []
    scope: dict[str, Any] = {"type": "http", "method": "POST", "path": path, "headers": headers}
    await sessions(scope, _no_body, _nobody)


async def _no_body() -> Message:
    return {"type": "http.request"}


async def _nobody(message: Message) -> None:
    pass


async def test_a_session_that_nobody_uses_is_ended_as_its_client_would() -> None:
    sdk = Sdk()
    sessions = PrincipalSessions(sdk, FairShares(4), IDLE_S, needs_token=False, events=StreamEvents())
    await request(sessions, session_id=None)

    with anyio.fail_after(10):
        await sdk.deleted.wait()

    assert sessions._sessions == {}  # pyright: ignore[reportPrivateUsage]  # nothing is kept of it


async def test_a_session_with_a_request_in_progress_is_in_use() -> None:
    sdk = Sdk()
    sessions = PrincipalSessions(sdk, FairShares(4), IDLE_S, needs_token=False, events=StreamEvents())
    await request(sessions, session_id=None)

    async with anyio.create_task_group() as group:
        group.start_soon(lambda: request(sessions, path="/slow"))
        await anyio.sleep(IDLE_S * 4)  # longer than it may be idle
        assert not sdk.deleted.is_set()
        sdk.release.set()
    with anyio.fail_after(10):
        await sdk.deleted.wait()
