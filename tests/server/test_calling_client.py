"""The client behind a call, as upstreams reach it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mcp_types as types

from goat_mcp.server.calling_client import ChannelClient, DeclaredCapabilities
from goat_mcp.server.client_channel import DirectChannel
from goat_mcp.server.client_roots import ClientRoots

FORMS = types.ClientCapabilities(elicitation=types.ElicitationCapability())
NONE = types.ClientCapabilities()


class _Request(DirectChannel):
    """A call whose request may become another one, as a suspended call's does."""

    def __init__(self, capabilities: types.ClientCapabilities | None) -> None:
        self.now = capabilities
        self.dumps = 0

    @property
    def capabilities(self) -> types.ClientCapabilities | None:
        return self.now

    @property
    def declared(self) -> Mapping[str, Any]:
        self.dumps += 1
        return super().declared


def test_a_client_is_described_once_for_each_request_that_its_call_goes_on_by() -> None:
    request: Any = _Request(FORMS)
    client = ChannelClient(request, "", {}, ClientRoots(), DeclaredCapabilities(), "s")

    told = [client.capabilities, client.capabilities]
    request.now = NONE
    told += [client.capabilities, client.capabilities]
    request.now = None
    told += [client.capabilities, client.capabilities]

    assert told == [{"elicitation": {}}, {"elicitation": {}}, {}, {}, {}, {}]
    assert request.dumps == 3


def test_a_client_is_described_once_for_all_of_its_calls() -> None:
    request: Any = _Request(FORMS)
    declared = DeclaredCapabilities()

    told = [ChannelClient(request, "", {}, ClientRoots(), declared, "s").capabilities for _ in range(3)]

    assert told == [{"elicitation": {}}] * 3
    assert request.dumps == 1
