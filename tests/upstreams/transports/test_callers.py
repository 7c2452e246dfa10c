"""What an upstream tells goes to the clients of its connection, with what belongs to them in its `_meta`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import mcp_types as types
import pytest

from goat_mcp.core.calling_client import no_roots
from goat_mcp.core.context import ToolContext
from goat_mcp.upstreams.call_timeout import CallClock
from goat_mcp.upstreams.transports.callers import Callers
from tests.upstreams.calls.test_multi_round import Person

pytestmark = pytest.mark.anyio
SENT = {
    "vendor/x": {"a": 1},
    "traceparent": "00-1-2-01",
    "io.modelcontextprotocol/related-task": {},
    "progressToken": 3,
}


@dataclass(eq=False)
class Listener(Person):
    log_level: str = "debug"
    heard: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list[tuple[str, Mapping[str, Any]]])

    @property
    def cancellation(self) -> Mapping[str, Any]:
        return {}

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        self.heard.append((method, params))


@pytest.mark.parametrize(
    ("meta", "passed"),
    [(SENT, {"_meta": {"vendor/x": {"a": 1}, "traceparent": "00-1-2-01"}}), ({"progressToken": 3}, {}), (7, {})],
    ids=["some pass", "all are the hop's", "none at all"],
)
async def test_a_log_message_keeps_what_is_not_the_hops_of_its_meta(meta: object, passed: Mapping[str, Any]) -> None:
    # REL-5
    client = Listener()
    callers = Callers("up", {}, allow=(), roots=no_roots)

    with callers.one(ToolContext(call_id="c", client=client), CallClock(60, 60)):
        callers.notified("notifications/message", {"level": "error", "data": "x", "_meta": meta})
        await callers.flush(client)

    told = {"level": "error", "data": "x", "logger": "up", **passed}
    assert client.heard == [("notifications/message", told)]
    # And as it leaves us.
    sent = types.server_notification_adapter.validate_python({"method": "notifications/message", "params": told})
    assert sent.model_dump(by_alias=True, exclude_none=True, mode="json")["params"] == told
