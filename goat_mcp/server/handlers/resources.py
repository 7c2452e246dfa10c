"""Resources as MCP requests: lists, reads and subscriptions, of our own and of upstreams."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError

from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError, UpstreamError
from goat_mcp.core.json_values import escaped_surrogates
from goat_mcp.core.names import OWN_URIS
from goat_mcp.core.result import ToolResult
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.apps.apps import app_entries, read_app
from goat_mcp.server.change_notifications import MAX_SUBSCRIPTIONS, ChangeHub
from goat_mcp.server.client_channel import Context
from goat_mcp.server.error_responses import check, no_such_resource, refusal, relayed_error
from goat_mcp.server.handlers.resource_lists import ResourceLists
from goat_mcp.server.handlers.skills import reads_skill
from goat_mcp.server.handlers.tasks import TaskRequests
from goat_mcp.server.requests import Requests
from goat_mcp.server.result_compatibility import downgraded_contents, sanitized_answer

if TYPE_CHECKING:  # loaded when somebody asks for one
    from goat_mcp.core.resources import Reading

LISTEN_WAIT_S = 10.0
"""How long a change stream waits for upstreams before it says which changes it reports."""


@dataclass(eq=False)
class Resources:
    """Handlers of `resources/list`, `resources/templates/list` and `resources/read`."""

    gateway: Gateway
    lists: ResourceLists
    requests: Requests

    async def list(self, ctx: Context, params: types.PaginatedRequestParams | None) -> Any:
        rights = self.requests.reader(ctx).rights
        own = [*self._own("entries"), *(app_entries() if rights.shows_apps else ())]
        if self.gateway.on_demand.has_own_skills:
            own += self.gateway.on_demand.skill_calls().listed_resources(rights)
        return await self.lists.page("resources", "resources", own, params, rights)

    async def templates(self, ctx: Context, params: types.PaginatedRequestParams | None) -> Any:
        return await self.lists.page(
            "templates", "resourceTemplates", self._own("templates"), params, self.requests.reader(ctx).rights
        )

    async def read(self, ctx: Context, params: types.ReadResourceRequestParams) -> Any:
        uri = str(params.uri)
        if (reading := await self.own_reading(uri, self.requests.reader(ctx))) is not None:
            text = escaped_surrogates(reading.text)
            meta = dict(reading.meta) or None
            contents = types.TextResourceContents(uri=uri, mime_type=reading.mime_type, text=text, _meta=meta)
            return types.ReadResourceResult(contents=[contents])
        if uri.startswith(OWN_URIS):
            raise no_such_resource(uri, ctx.protocol_version)

        is_skill = reads_skill(self.gateway, uri, self.requests.reader(ctx).rights)
        calls = self.gateway.on_demand.skill_calls() if is_skill else self.gateway.on_demand.resource_calls()
        outcome = await self.requests.converse(ctx, params, lambda context: calls.read(uri, context))
        if not isinstance(outcome, ToolResult):
            return outcome
        if outcome.error_code == ErrorCode.TOOL_NOT_FOUND:
            raise no_such_resource(uri, ctx.protocol_version)
        from goat_mcp.catalog.resource_tools import contents_of

        return downgraded_contents(sanitized_answer(contents_of(check(outcome), uri)), ctx.protocol_version, uri)

    async def own_reading(self, uri: str, reader: ToolContext) -> Reading | None:
        """What one of our own holds; None where there is nothing, or nothing of this principal's."""
        if not uri.startswith(OWN_URIS):
            return None
        if reader.rights.shows_apps and (document := await read_app(uri)) is not None:
            return document
        with self.gateway.services.spill.used_by(reader.principal):  # whose files and directory count
            for provider in self.gateway.resources.providers:
                if (reading := await provider.read(uri, reader)) is not None:
                    return reading
        return None

    def _own(self, member: str) -> Sequence[Mapping[str, Any]]:
        return [entry for provider in self.gateway.resources.providers for entry in getattr(provider, member)]


@dataclass(eq=False)
class Subscriptions:
    """Handlers of `resources/subscribe`, `resources/unsubscribe` and `subscriptions/listen` (CHG-3, CHG-4).

    If somebody watches a resource of an upstream, that upstream is watched for as long.
    """

    gateway: Gateway
    changes: ChangeHub
    resources: Resources
    requests: Requests
    tasks: TaskRequests

    async def subscribe(self, ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        uri = str(params.uri)
        if self.changes.is_subscribed(ctx, uri):
            return types.EmptyResult()
        try:
            release = await self._watch(ctx, uri)
        except ToolError as refused:
            raise refusal(refused) from None
        except UpstreamError as refused:
            raise relayed_error(refused) from None
        if not await self.changes.subscribe(ctx, uri, release):
            release()
            raise MCPError(code=types.INVALID_PARAMS, message=f"a client may watch {MAX_SUBSCRIPTIONS} resources")
        return types.EmptyResult()

    async def unsubscribe(self, ctx: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        self.changes.unsubscribe(ctx, str(params.uri))
        return types.EmptyResult()

    async def listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """One change stream. Its acknowledgement names what is really watched, and nothing else."""
        requested = list(dict.fromkeys(map(str, params.notifications.resource_subscriptions or ())))[:MAX_SUBSCRIPTIONS]
        with ExitStack() as watched:
            agreed = await self._watch_all(ctx, requested, watched)
            filter = params.notifications.model_copy(update={"resource_subscriptions": agreed or None})
            params = params.model_copy(update={"notifications": filter})
            return await self.tasks.listen(ctx, params, self.changes.listen)

    async def _watch_all(self, ctx: Context, uris: list[str], watched: ExitStack) -> list[str]:
        agreed: set[str] = set()

        async def watch(uri: str) -> None:
            with suppress(ToolError, UpstreamError, MCPError):
                release = await self._watch(ctx, uri)
                watched.callback(release)
                agreed.add(uri)

        async with anyio.create_task_group() as group:
            for uri in uris:
                group.start_soon(watch, uri)
        return [uri for uri in uris if uri in agreed]

    async def _watch(self, ctx: Context, uri: str) -> Callable[[], None]:
        """Watch this one where it comes from, until what is returned is called.

        Raises `MCPError` where nobody has it, `ToolError` and `UpstreamError` where its upstream does not agree.
        """
        if uri.startswith(OWN_URIS):
            # What cannot be read cannot be watched.
            if await self.resources.own_reading(uri, self.requests.reader(ctx)) is None:
                raise no_such_resource(uri, ctx.protocol_version)
            return _nothing
        source = await self.gateway.on_demand.resource_calls().find_owner(uri, self.requests.reader(ctx))
        if source is None:
            raise no_such_resource(uri, ctx.protocol_version)
        watches = self.gateway.upstreams.upstream(source).views.watches
        return await watches.add(self.requests.context(ctx), uri, LISTEN_WAIT_S)


def _nothing() -> None:
    """Nobody else watches our own."""
