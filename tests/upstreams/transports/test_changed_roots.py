"""An upstream between the calls of a client whose roots have changed, against a double of that client (ERA-6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from goat_mcp.core.calling_client import ClientRequest, NotificationTarget, RootsOf, no_roots
from goat_mcp.core.context import ToolContext
from goat_mcp.upstreams.call_timeout import CallClock
from goat_mcp.upstreams.transports.callers import Callers
from goat_mcp.upstreams.transports.server_requests import declared_for

pytestmark = pytest.mark.anyio

TELLS: Mapping[str, Any] = {"roots": {"listChanged": True}}


@dataclass
class Mover:
    """A client that works in one folder at a time."""

    folder: str = "/one"
    capabilities: Mapping[str, Any] = field(default_factory=lambda: TELLS)
    protocol_version: str = "2025-11-25"
    is_stateless: bool = False
    log_level: str = ""
    notices: NotificationTarget | None = None
    given: Mapping[str, Any] = field(default_factory=dict[str, Any])
    known_roots: Sequence[Path] | None = None

    @property
    def cancellation(self) -> Mapping[str, Any]:
        return {}

    async def roots(self) -> Sequence[Path]:
        return (Path(self.folder),)

    async def ask(self, requests: Mapping[str, ClientRequest]) -> Mapping[str, dict[str, Any]]:
        return {key: {"roots": [{"uri": f"file://{self.folder}"}]} for key in requests}

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        raise AssertionError("nothing is told here")


@dataclass
class Silent(Mover):
    """It says nothing when it is asked for its roots by us."""

    asked: anyio.Event = field(default_factory=anyio.Event)

    async def roots(self) -> Sequence[Path]:
        self.asked.set()
        await anyio.sleep_forever()
        raise AssertionError


def callers(client: Mover, roots: RootsOf = no_roots) -> Callers:
    return Callers("s", declared_for(client.capabilities, ("roots",)), allow=("roots",), roots=roots)


async def uris(of: Callers) -> list[str]:
    return [root["uri"] for root in (await of.answer("roots/list", {}))["roots"]]


async def test_it_is_told_with_the_next_call_and_knows_the_new_ones_when_that_is_over() -> None:
    client = Mover()
    connection = callers(client)
    context = ToolContext(call_id="t", client=client)
    with connection.one(context, CallClock(60, 60)):
        assert await uris(connection) == ["file:///one"]
    client.folder = "/two"
    connection.roots_changed()

    with connection.one(context, CallClock(60, 60)):
        told = [await connection.take_new_roots(client) for _ in range(2)]
        meanwhile = await uris(connection)

    assert told == [True, False]
    assert meanwhile == await uris(connection) == ["file:///two"]


async def test_a_call_that_was_given_up_while_its_client_was_asked_leaves_the_news_to_the_next() -> None:
    client = Silent()
    connection = callers(client)
    with connection.one(ToolContext(call_id="t", client=client), CallClock(60, 60)):
        await uris(connection)
    connection.roots_changed()
    async with anyio.create_task_group() as group:
        group.start_soon(connection.take_new_roots, client)
        await client.asked.wait()
        group.cancel_scope.cancel()

    assert await connection.take_new_roots(Mover())


async def test_one_that_never_asked_or_was_not_promised_notices_is_not_told() -> None:
    silent = Mover(capabilities={"roots": {}})
    never_asked, unpromised = callers(Mover()), callers(silent)
    with unpromised.one(ToolContext(call_id="t", client=silent), CallClock(60, 60)):
        await uris(unpromised)

    for one in (never_asked, unpromised):
        one.roots_changed()

    assert not await never_asked.take_new_roots(Mover())
    assert not await unpromised.take_new_roots(silent)


async def test_the_workspace_that_follows_the_client_is_what_counts() -> None:
    workspace = [Path("/one")]
    connection = callers(Mover(), lambda client_has_some: tuple(workspace))
    assert await uris(connection) == ["file:///one"]
    workspace[0] = Path("/two")
    connection.roots_changed()

    assert await connection.take_new_roots(Mover(folder="/elsewhere"))

    assert await uris(connection) == ["file:///two"]
