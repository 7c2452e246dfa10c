"""What a replica believes of a request that claims to come from another one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from mcp.server.auth.provider import AccessToken
from starlette.types import Message, Receive, Scope, Send

from goat_mcp.server.http.token import StaticToken
from goat_mcp.server.replicas.gate import HOP, HopGate, HopPrincipals
from goat_mcp.web.hops.client import HOP_HEADER
from goat_mcp.web.hops.signature import Hop, HopChecks, HopKeys, sha256

pytestmark = pytest.mark.anyio
KEYS = HopKeys(b"key-of-the-tests-0123456789-0123456789")
TOKEN = "token-of-the-operator-0123456789-0123456789"
ADA: dict[str, Any] = {
    "client_id": "ada",
    "subject": "ada",
    "scopes": [],
    "expires_at": None,
    "resource": None,
    "claims": None,
}
BODY = b'{"a": 1}'
HEADERS = {"content-type": "application/json", "mcp-session-id": "b.1"}


def hop(**changes: Any) -> Hop:
    return replace(Hop("POST", "/mcp", HEADERS, sha256(BODY), ADA, "a", "b", 7), **changes)


class Served:
    """The application behind the gate: what came to it, and whose it was."""

    def __init__(self) -> None:
        self.principals = HopPrincipals(StaticToken(TOKEN))
        self.scopes: list[Scope] = []
        self.bodies: list[bytes] = []
        self.who: list[AccessToken | None] = []
        self.warnings: list[str] = []
        checks = HopChecks(lambda: ("b", 7))
        apps = {"/mcp": self.app}
        self.gate = HopGate(self.front, apps, KEYS, checks, 1000, self.warnings.append, self.principals)

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scopes.append(scope)
        self.bodies.append((await receive())["body"])
        shown = dict(scope["headers"]).get(b"authorization", b"").decode().removeprefix("Bearer ")
        self.who.append(await self.principals.verify_token(shown))
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def front(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 299, "headers": []})

    async def status(self, sealed: str, body: bytes = BODY, path: str = "/replica/mcp", **headers: str) -> int:
        sent: list[Message] = []
        given = {HOP_HEADER: sealed, **headers}
        raw = [(name.encode(), value.encode()) for name, value in given.items()]
        scope: Scope = {"type": "http", "method": "POST", "path": path, "headers": raw}

        async def receive() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Message) -> None:
            sent.append(message)

        await self.gate(scope, receive, send)
        return sent[0]["status"]


async def test_a_signed_request_is_served_for_the_principal_in_it_and_with_its_headers_only() -> None:
    served = Served()

    assert await served.status(KEYS.seal(hop()), authorization=f"Bearer {TOKEN}", mcp_session_id="b.2") == 200

    scope = served.scopes[0]
    who = served.who[0]
    assert who is not None and who.subject == "ada"
    assert (scope["path"], scope[HOP].source, served.bodies) == ("/mcp", "a", [BODY])
    names = [name for name, _ in scope["headers"]]
    assert names == [b"content-type", b"mcp-session-id", b"authorization"]
    assert await served.principals.verify_token(dict(scope["headers"])[b"authorization"].decode()) is None


async def test_a_recorded_request_is_not_served_again() -> None:
    served = Served()
    sealed = KEYS.seal(hop())

    assert [await served.status(sealed), await served.status(sealed)] == [200, 403]
    assert served.warnings == ["seen before"]


@pytest.mark.parametrize(
    ("changes", "more", "why"),
    [
        ({}, {"body": b'{"a": 2}'}, "with another body"),
        ({}, {"body": b"x" * 1001}, "too large"),
        ({}, {"path": "/replica/mcp/narrow"}, "for another path"),
        ({"path": "/ui"}, {"path": "/replica/ui"}, "for '/ui', which is not served here"),
        ({"fence": 6}, {}, "meant for b (6)"),
        ({"target": "c"}, {}, "meant for c (7)"),
    ],
    ids=str,
)
async def test_a_request_that_is_not_what_was_signed_is_refused_and_nothing_is_served(
    changes: dict[str, Any], more: dict[str, Any], why: str
) -> None:
    served = Served()

    assert await served.status(KEYS.seal(hop(**changes)), **more) == 403

    assert served.warnings == [why]
    assert served.scopes == []


async def test_a_request_that_nobody_or_somebody_else_has_signed_is_refused() -> None:
    served = Served()

    assert await served.status("") == 403
    assert await served.status(HopKeys(b"another key").seal(hop())) == 403

    assert served.warnings == ["not signed with a key of this installation"] * 2
    assert served.scopes == []


async def test_a_request_for_nobody_is_nobodys() -> None:
    served = Served()

    assert await served.status(KEYS.seal(hop(principal=None))) == 200

    assert served.who == [None]


async def test_other_paths_are_not_the_gates() -> None:
    assert await Served().status("", path="/mcp") == 299
    assert await Served().status("", path="/replica") == 299
