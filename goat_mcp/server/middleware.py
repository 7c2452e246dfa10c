"""Server middleware: what happens to every request around its handler.

This gateway may be one of several behind each other: it says who it is, and stops what has come round (CHN-2). A client
that is no gateway sees no more of it than an id in the answer to its greeting.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_REQUEST

from goat_mcp.core.gateway_chain import HOPS_KEY, INSTANCE_KEY, hops_in, why_cyclic
from goat_mcp.server.changes import ChangeHub
from goat_mcp.server.client_channel import Context
from goat_mcp.server.handlers.tool_list import ToolList

_LISTS = {
    "tools/list": ("tools", "name"),
    "prompts/list": ("prompts", "name"),
    "resources/list": ("resources", "uri"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate"),
}
"""By method: the member that holds the entries, and what one is known by."""
_GREETINGS = frozenset({"initialize", "server/discover"})


class Middleware:
    """`path_of` returns the gateways behind us that an entry comes through: by the member of the answer that holds it,
    and the name or URI that clients see."""

    def __init__(
        self, instance: str, path_of: Callable[[str, str], tuple[str, ...]], tools: ToolList, changes: ChangeHub
    ) -> None:
        self._instance = instance
        self._path_of = path_of
        self._tools = tools
        self._changes = changes

    async def around_request(self, ctx: Context, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
        hops = hops_in((ctx.params or {}).get("_meta"))
        if hops and (why := why_cyclic(hops, self._instance)):
            raise MCPError(
                code=INVALID_REQUEST,
                message=f"gateway_cycle: {ctx.method} is not passed on: {why}",
                data={"reason": "gateway_cycle"},
            )
        answer = await (self._tools.once(ctx, call_next) if ctx.method == "tools/list" else call_next(ctx))
        if ctx.method == "notifications/initialized":
            self._changes.connected(ctx)
        if ctx.method in _GREETINGS and isinstance(answer, dict):
            greeting = cast("dict[str, Any]", answer)
            meta: dict[str, Any] = greeting.get("_meta") or {}
            return {**greeting, "_meta": {**meta, INSTANCE_KEY: self._instance}}
        if hops and ctx.method in _LISTS and isinstance(answer, dict):
            listed = cast("dict[str, Any]", answer)
            member, key = _LISTS[ctx.method]
            return {**listed, member: [self._with_path(member, key, entry) for entry in listed[member]]}
        return answer

    def _with_path(self, member: str, key: str, entry: Mapping[str, Any]) -> Mapping[str, Any]:
        path = self._path_of(member, entry[key])
        return {**entry, "_meta": {**(entry.get("_meta") or {}), HOPS_KEY: list(path)}} if path else entry
