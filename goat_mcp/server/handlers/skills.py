"""`skills/list`, `skills/get` and `resources/directory/read` of the Skills extension (SEP-2640), in both eras.

The files of a skill are read with `resources/read`, which asks `SkillCalls` for those of a skill.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ToolError, UpstreamError
from goat_mcp.core.json_values import escaped_surrogates
from goat_mcp.core.rights import Rights
from goat_mcp.core.skill_uris import SCHEME, SKILLS_EXTENSION
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.client_channel import Context
from goat_mcp.server.error_responses import check, refusal, relayed_error
from goat_mcp.server.handlers.resource_lists import Pages
from goat_mcp.server.requests import Requests
from goat_mcp.server.result_compatibility import sanitized_answer

if TYPE_CHECKING:  # loaded with the first request for a skill
    from goat_mcp.gateway.skill_calls import SkillCalls

PAGE_SIZE = 100
"""An entry names each file of its skill: a page is some hundred kilobytes then."""
DECLARED: Mapping[str, Any] = {"directoryRead": True}


class SkillParams(types.RequestParams):
    uri: str


class DirectoryParams(types.PaginatedRequestParams):
    uri: str


@dataclass(eq=False)
class SkillRequests:
    gateway: Gateway
    requests: Requests
    _pages: Pages = field(default_factory=lambda: Pages("skills", PAGE_SIZE))

    def add_to(self, server: Server[Any]) -> None:
        """Serve and declare the extension. Clients of any revision may use it: the base protocol says which of the
        result's members they know."""
        server.add_request_handler("skills/list", types.PaginatedRequestParams, self.list)
        server.add_request_handler("skills/get", SkillParams, self.get)
        server.add_request_handler("resources/directory/read", DirectoryParams, self.directory)
        server.extensions[SKILLS_EXTENSION] = dict(DECLARED)

    @property
    def _calls(self) -> SkillCalls:
        return self.gateway.on_demand.skill_calls()

    async def list(self, ctx: Context, params: types.PaginatedRequestParams) -> dict[str, Any]:
        context = await self._ready(ctx)
        found = await self._calls.list(context)
        entries, cursor = self._pages.page(found.entries, params.cursor)
        answer: dict[str, Any] = {"skills": list(entries), **_fresh(ctx, found.ttl_ms)}
        return sanitized_answer(answer if cursor is None else {**answer, "nextCursor": cursor})

    async def get(self, ctx: Context, params: SkillParams) -> dict[str, Any]:
        context = await self._ready(ctx)
        try:
            entry = await self._calls.get(params.uri, context)
        except ToolError as refused:
            raise refusal(refused) from None
        except UpstreamError as refused:
            raise relayed_error(refused) from None
        if entry is None:
            uri = escaped_surrogates(params.uri[:200])
            raise MCPError(types.INVALID_PARAMS, f"no skill is served at {uri}; skills/list has those that are")
        return sanitized_answer({"skill": dict(entry), **_fresh(ctx, 0)})

    async def directory(self, ctx: Context, params: DirectoryParams) -> dict[str, Any]:
        context = await self._ready(ctx)
        try:
            outcome = check(await self._calls.directory(params.uri, params.cursor, context))
        except ToolError as refused:
            raise refusal(refused) from None
        except UpstreamError as refused:
            raise relayed_error(refused) from None
        listed = cast("Mapping[str, Any]", outcome.structured)
        return sanitized_answer({**listed, "resultType": "complete"})

    async def _ready(self, ctx: Context) -> ToolContext:
        """The context of a request, once the upstreams are known that were never seen."""
        context = self.requests.context(ctx)
        await self.gateway.upstreams.first_offers(shows=self.gateway.visibility.shown(context.rights))
        return context


def _fresh(ctx: Context, ttl_ms: int) -> dict[str, Any]:
    """What a list says of its age, where the revision knows that."""
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return {"resultType": "complete"}
    return {"resultType": "complete", "ttlMs": ttl_ms, "cacheScope": "private"}


def reads_skill(gateway: Gateway, uri: str, rights: Rights) -> bool:
    """Whether `resources/read` of this URI is about a file of a skill."""
    calls = gateway.on_demand.skill_calls
    if not uri.startswith(SCHEME) and calls.made is None:
        return False
    return calls().may_have(uri, rights)
