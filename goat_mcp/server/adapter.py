"""The MCP server: protocol on the outside, `Pipeline` on the inside. No tool logic and no transport lives here."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.abc
import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.lowlevel import Server
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.request_state import InvalidRequestState, RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_REQUEST
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from goat_mcp.catalog.offerings import Kind
from goat_mcp.catalog.registry import BUILTIN_SOURCE
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.gateway_chain import HOPS_KEY, INSTANCE_KEY, hops_in, why_cyclic
from goat_mcp.core.lazy import Lazy
from goat_mcp.core.result import ToolResult
from goat_mcp.core.rights import Rights
from goat_mcp.core.version import __version__
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.apps.apps import with_html
from goat_mcp.server.caller_identity import (
    APP_MIME_TYPE,
    APPS_EXTENSION,
    TASKS_EXTENSION,
    Caller,
    CallerIdentity,
    ClientProfiles,
    Transport,
)
from goat_mcp.server.cancellations import Cancellations
from goat_mcp.server.change_notifications import ChangeHub
from goat_mcp.server.client_channel import CalledTool, Context
from goat_mcp.server.client_roots import RootsRequest
from goat_mcp.server.handlers.prompts import Prompts
from goat_mcp.server.handlers.resource_lists import ResourceLists
from goat_mcp.server.handlers.resources import Resources, Subscriptions
from goat_mcp.server.handlers.skills import SkillRequests
from goat_mcp.server.handlers.tasks import TaskRequests
from goat_mcp.server.handlers.tool_list import LIST_TTL_MS, ToolList
from goat_mcp.server.http.token import read_or_create_token
from goat_mcp.server.plain_calls import PlainCalls, PlainContext
from goat_mcp.server.requests import CallAsTask, Requests
from goat_mcp.server.result_compatibility import downgraded_result, is_plain_text, sanitized_result
from goat_mcp.server.shared_bus import SharedBus
from goat_mcp.server.stdio.fast_path import FastPath
from goat_mcp.server.suspended_calls import KEPT_S, SuspendedCalls
from goat_mcp.server.travelling_state import TravellingState

if TYPE_CHECKING:  # loaded for the first client that knows tasks
    from goat_mcp.server.tasks.client_tasks import ClientTasks

_LISTS = {
    "tools/list": ("tools", "name"),
    "prompts/list": ("prompts", "name"),
    "resources/list": ("resources", "uri"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate"),
}
"""By method: the member that holds the entries, and what one is known by."""
_GREETINGS = frozenset({"initialize", "server/discover"})


@dataclass(eq=False)
class Middleware:
    """`path_of` returns the gateways behind us that an entry comes through: by the member of the answer that holds it,
    and the name or URI that clients see."""

    instance: str
    path_of: Callable[[str, str], tuple[str, ...]]
    tools: ToolList
    changes: ChangeHub

    async def around_request(self, ctx: Context, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
        hops = hops_in((ctx.params or {}).get("_meta"))
        if hops and (why := why_cyclic(hops, self.instance)):
            raise MCPError(
                code=INVALID_REQUEST,
                message=f"gateway_cycle: {ctx.method} is not passed on: {why}",
                data={"reason": "gateway_cycle"},
            )
        answer = await (self.tools.once(ctx, call_next) if ctx.method == "tools/list" else call_next(ctx))
        if ctx.method == "notifications/initialized":
            self.changes.connected(ctx)
        if ctx.method in _GREETINGS and isinstance(answer, dict):
            greeting = cast("dict[str, Any]", answer)
            meta: dict[str, Any] = greeting.get("_meta") or {}
            return {**greeting, "_meta": {**meta, INSTANCE_KEY: self.instance}}
        if hops and ctx.method in _LISTS and isinstance(answer, dict):
            listed = cast("dict[str, Any]", answer)
            member, key = _LISTS[ctx.method]
            return {**listed, member: [self._with_path(member, key, entry) for entry in listed[member]]}
        return answer

    def _with_path(self, member: str, key: str, entry: Mapping[str, Any]) -> Mapping[str, Any]:
        path = self.path_of(member, entry[key])
        return {**entry, "_meta": {**(entry.get("_meta") or {}), HOPS_KEY: list(path)}} if path else entry


INSTRUCTIONS = (
    "goat-mcp gives you tools for a workspace (read, search, edit, run commands) and the tools of the user's other "
    "MCP servers, named mcp__SERVER__TOOL. Paths are absolute; @ stands for the workspace root. Read a file before "
    "you change it. Long commands and calls become background tasks: read them with TaskOutput, end them with TaskStop."
)
INSTRUCTIONS_CHARS = 2_000
"""Hosts cut them there."""


class _Server(Server[Any]):
    """The SDK's server, with `listChanged` advertised on every transport.

    Its HTTP path asks for capabilities without notification options, which would say false.
    """

    def get_capabilities(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
        *,
        protocol_version: str | None = None,
    ) -> types.ServerCapabilities:
        capabilities = super().get_capabilities(
            NotificationOptions(tools_changed=True, resources_changed=True, prompts_changed=True),
            experimental_capabilities,
            extensions,
            protocol_version=protocol_version,
        )
        if protocol_version not in MODERN_PROTOCOL_VERSIONS and capabilities.extensions:
            # Clients of the handshake era know no tasks.
            known = {key: one for key, one in capabilities.extensions.items() if key != TASKS_EXTENSION}
            capabilities.extensions = known or None
        return capabilities


@dataclass
class Adapter:
    """Turns MCP requests into pipeline calls for one gateway, over one kind of transport."""

    gateway: Gateway
    transport: Transport
    changes: ChangeHub = field(init=False)
    suspended_for_s: float = KEPT_S
    suspended: SuspendedCalls = field(init=False)
    tells_newcomers: bool = False
    """Whether who connects holds lists of a process before this one (`server.restart`)."""

    def __post_init__(self) -> None:
        tokens = None if self.transport == "stdio" else self.gateway.services.one_time_tokens(self.suspended_for_s)
        self.suspended = SuspendedCalls(self.suspended_for_s, tokens)
        self._who = CallerIdentity(
            self.transport, ClientProfiles(self.gateway.settings.profile_of_client), self.gateway.own_lists
        )
        self._roots = RootsRequest(self.gateway, self.transport)
        self._cancellations = Cancellations()
        self._requests = Requests(self._who, self.suspended, self._cancellations)
        services = self.gateway.services
        self.changes = ChangeHub(
            self._who.principal,
            lambda: self.gateway.resources.looks,
            connected=self._connected,
            replicas=None if services.events is None else SharedBus(services.events),
            is_shared=services.is_shared,
            session_of=lambda ctx: self._who.session_key(ctx, self._who.principal()),
        )
        self.gateway.announcements.listen(self.changes.resource_changed, self.changes.is_watched)
        services.updates.listen(self.changes.upstream_updated)
        self.gateway.own_lists.on_change(self.changes.own_list_changed)
        tools = ToolList(self.gateway, self.changes, self._who, self._roots, self._requests)
        lists = ResourceLists(self.gateway, self._list_changed)
        resources = Resources(self.gateway, lists, self._requests)
        prompts = Prompts(self.gateway, lists, self._requests)
        self._tasks = Lazy(self._client_tasks)
        tasks = TaskRequests(self._tasks, self._who)
        watching = Subscriptions(self.gateway, self.changes, resources, self._requests, tasks)
        self.gateway.registry.on_change(lambda _: self.changes.tools_changed())
        self.gateway.lists.on_outdated(partial(self._outdated, lists))
        own = self.gateway.program_tools
        name, instructions = (own.name, own.instructions) if own.alone else ("goat-mcp", INSTRUCTIONS)
        more = self.gateway.on_demand.more_instructions(INSTRUCTIONS_CHARS - len(instructions))
        self.server = _Server(
            name,
            version=__version__,
            title=name,
            instructions=instructions + more,
            on_list_tools=tools.list,
            on_call_tool=self._call_tool,
            on_list_resources=resources.list,
            on_list_resource_templates=resources.templates,
            on_read_resource=resources.read,
            on_subscribe_resource=watching.subscribe,
            on_unsubscribe_resource=watching.unsubscribe,
            on_list_prompts=prompts.list,
            on_get_prompt=prompts.get,
            on_completion=prompts.complete,
            on_subscriptions_listen=watching.listen,
            cache_hints={
                "tools/list": CacheHint(ttl_ms=LIST_TTL_MS, scope="private"),
                "server/discover": CacheHint(ttl_ms=LIST_TTL_MS, scope="private"),
            },
            get_tool_input_schema=tools.input_schema,
        )
        self.server.extensions = {TASKS_EXTENSION: {}}
        if not own.alone:
            self.server.extensions[APPS_EXTENSION] = {"mimeTypes": [APP_MIME_TYPE]}
            SkillRequests(self.gateway, self._requests).add_to(self.server)
        tasks.add_to(self.server)
        # Not by a parameter: the SDK warns of it, for the stateless era has no such request.
        self.server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, self._requests.set_log_level)
        self.server.add_notification_handler(
            "notifications/roots/list_changed", types.NotificationParams, self._roots_changed
        )
        self._security = self._state_security()
        self._seal = RequestStateBoundary(self._security, default_audience="goat-mcp")
        middleware = Middleware(self.gateway.instance, self.gateway.upstreams.path_of, tools, self.changes)
        self.server.middleware += [middleware.around_request, self._seal]

    def _state_security(self) -> RequestStateSecurity:
        """The next request may come to another process of the same state directory, over stdio after a restart: it
        can say at least that the call is lost (ERA-5)."""
        keys = self.gateway.services.shared_keys
        try:
            keys = keys or [read_or_create_token(self.gateway.state.folder("http") / "request-state.key")]
        except (ToolError, OSError):
            if self.transport != "stdio":
                raise
            return RequestStateSecurity.ephemeral(ttl=self.suspended_for_s)
        return RequestStateSecurity(keys=keys, ttl=self.suspended_for_s)

    def replica_of_state(self, sealed: str) -> str:
        """The replica that holds the call of a sealed state; empty if it names none, or is not ours."""
        if not sealed:
            return ""
        try:
            claims = json.loads(self._security.codec.unseal(sealed))
            return TravellingState.read(claims["s"]).replica
        except (InvalidRequestState, ValueError, KeyError, TypeError, AttributeError):
            return ""  # whoever serves the request says so

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Run what belongs to no request, until cancelled: notices of changes, and calls that wait for an answer."""
        async with anyio.create_task_group() as group:
            await group.start(self.suspended.run)
            group.start_soon(self.changes.run)
            task_status.started()

    def fast_path(self) -> FastPath:
        """The fast path of one connection over stdio."""
        return FastPath(self.plain_calls())

    def plain_calls(self) -> PlainCalls:
        """What runs for a call that goes past the SDK."""
        return PlainCalls(self.server, self._call_tool, self._seal, self._cancellations)

    def _outdated(self, lists: ResourceLists) -> None:
        self.changes.tools_changed()
        lists.compare()

    def _list_changed(self, kind: Kind) -> None:
        self.changes.list_changed("prompts" if kind == "prompts" else "resources")

    async def _call_tool(self, ctx: Context, params: CalledTool) -> Any:
        if (question := await self._roots.before(ctx, params)) is not None:
            return question
        name, arguments, rights = params.name, params.arguments or {}, self._who.of(ctx).rights
        preflight = self.gateway.on_demand.preflight()
        target = preflight.target_name(name, arguments, rights)
        outcome = await self._requests.converse(
            ctx,
            params,
            lambda context: self.gateway.call(name, arguments, context),
            lambda: preflight.definition_of(name, arguments, rights),
            lambda: preflight.only_reads(name, arguments, rights),
            self._as_task,
            partial(self._answer_now, ctx, target),
        )
        if not isinstance(outcome, ToolResult):
            return outcome
        if outcome.error_code == ErrorCode.TOOL_NOT_FOUND and target == name:
            raise MCPError(code=types.INVALID_PARAMS, message=outcome.text)
        return await self._answer(ctx, target, rights, outcome)

    async def _answer_now(self, ctx: Context, target: str, handle: ToolResult) -> None:
        """Answer a plain call that goes on."""
        assert isinstance(ctx, PlainContext) and ctx.call.answer_now is not None
        await ctx.call.answer_now(await self._answer(ctx, target, self._who.of(ctx).rights, handle))

    async def _answer(self, ctx: Context, target: str, rights: Rights, outcome: ToolResult) -> dict[str, Any]:
        """What travels."""
        outcome = await with_html(target, outcome)
        answer = outcome.wire(structured_always=self.gateway.settings.output.structured == "always")
        if is_plain_text(answer):
            return answer
        answer = sanitized_result(answer)
        if not outcome.is_relayed and self.gateway.catalog.of(rights).source_of(target) in (BUILTIN_SOURCE, None):
            return answer
        return downgraded_result(answer, ctx.protocol_version)

    def _client_tasks(self) -> ClientTasks:
        from goat_mcp.server.tasks.client_tasks import ClientTasks
        from goat_mcp.server.tasks.sealed_task import SealedTasks

        sealed = SealedTasks(self._security.codec)
        return ClientTasks(self.gateway, self._requests, sealed, lambda: self.suspended.replica)

    def _as_task(self, ctx: Context, params: CalledTool, caller: Caller) -> CallAsTask:
        return self._tasks().of_call(params.name, ctx, caller)

    def _connected(self, ctx: Context) -> Callable[[], None]:
        """A handshake client has connected. Returns what to do when it is gone."""
        session_key = self._requests.session_began(ctx)
        if self.tells_newcomers:
            for kind in ("tools", "prompts", "resources"):
                self.changes.list_changed(kind)

        def gone() -> None:
            self._requests.session_ended(session_key)
            self.gateway.upstreams.session_ended(session_key)

        return gone

    async def _roots_changed(self, ctx: Context, params: types.NotificationParams) -> None:
        self.gateway.client_roots_changed(self._requests.roots_changed(ctx))
