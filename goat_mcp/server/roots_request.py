"""Where no workspace was named, the roots of a client over stdio are it: what is asked to know them (design D8)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ValidationError

from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.caller_identity import Transport
from goat_mcp.server.client_channel import Context
from goat_mcp.server.client_roots import local_folders
from goat_mcp.server.requests import CalledTool

ROOTS_INPUT = "goat_roots"
ROOTS_TIMEOUT_S = 5.0


class RootsRequest:
    """Asked before a call, once and when they have changed; over HTTP never, since each client has its own."""

    def __init__(self, gateway: Gateway, transport: Transport) -> None:
        self._gateway = gateway
        self._transport = transport

    def go_without(self) -> None:
        """This client has none to tell of."""
        if self._transport == "stdio" and self._gateway.directories.wants_client_roots:
            self._gateway.adopt_client_roots(())

    async def before(self, ctx: Context, params: CalledTool) -> types.InputRequiredResult | None:
        """Ask. Returns a question to send first, where this era has no other way."""
        gateway = self._gateway
        if self._transport != "stdio" or not gateway.directories.wants_client_roots:
            return None
        capabilities = ctx.session.client_capabilities
        if capabilities is None or capabilities.roots is None:
            self.go_without()
            return None
        answer: Any = None
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            answer = (params.input_responses or {}).get(ROOTS_INPUT)
            if answer is None:
                return types.InputRequiredResult(input_requests={ROOTS_INPUT: types.ListRootsRequest()})
        else:
            # A client that refuses, or answers what is no list of roots, has none.
            with anyio.move_on_after(ROOTS_TIMEOUT_S), suppress(MCPError, ValidationError):
                answer = await ctx.session.send_request(types.ListRootsRequest(), _AnyRoots)
        if answer is None and gateway.workspace.roots:
            # It said that they have changed, and not to what.
            gateway.directories.wants_client_roots = False
            return None
        gateway.adopt_client_roots(
            local_folders(answer.model_dump(mode="json")) if isinstance(answer, BaseModel) else []
        )
        return None


def brings_roots(params: Mapping[str, Any]) -> bool:
    """Whether a request answers this question: a round of its call is spent."""
    answers = params.get("inputResponses")
    return isinstance(answers, Mapping) and ROOTS_INPUT in answers


class _AnyRoots(BaseModel):
    """An answer to `roots/list` of which one bad root does not spoil the others."""

    roots: list[dict[str, Any]] = []
