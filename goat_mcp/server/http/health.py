"""What probes ask: `/healthz` whether the process answers at all, `/readyz` whether it should be sent requests.

Without a token and whatever the Host: a balancer or an orchestrator asks at an address of its own. The answer says
nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from starlette.types import ASGIApp, Receive, Scope, Send

from goat_mcp.server.http.guard import Refusal

_PATHS = frozenset({"/healthz", "/readyz"})


@dataclass
class Health:
    """ASGI middleware, the outermost one. `why_unready` is one word; empty if the server is ready."""

    app: ASGIApp
    why_unready: Callable[[], str]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] not in _PATHS:
            await self.app(scope, receive, send)
            return
        if scope["method"] not in ("GET", "HEAD"):
            await Refusal(405, "method not allowed", ((b"allow", b"GET, HEAD"),)).answer(send)
            return
        why = self.why_unready() if scope["path"] == "/readyz" else ""
        await Refusal(503 if why else 200, why or "ok").answer(send)
