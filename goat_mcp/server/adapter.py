"""The MCP server: protocol on the outside, `Pipeline` on the inside. No tool logic and no transport lives here."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

import anyio
import anyio.abc
import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.lowlevel import Server
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from goat_mcp import __version__
from goat_mcp.catalog.offerings import Kind
from goat_mcp.catalog.registry import BUILTIN_SOURCE
from goat_mcp.core.context import Progress, ToolContext, no_progress
from goat_mcp.core.errors import ErrorCode, UpstreamError
from goat_mcp.core.result import ToolResult
from goat_mcp.core.surrogates import visible_surrogates
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.caller_identity import CallerIdentity, Transport
from goat_mcp.server.chaining import Chaining
from goat_mcp.server.changes import ChangeHub
from goat_mcp.server.client_channel import ClientChannel, Context, DirectChannel
from goat_mcp.server.client_profiles import ClientProfiles
from goat_mcp.server.client_roots import ClientRoots
from goat_mcp.server.client_side import ChannelClient
from goat_mcp.server.closed_streams import while_open
from goat_mcp.server.downgrade_result import downgraded_result, is_plain_text
from goat_mcp.server.elicitation import asker
from goat_mcp.server.handlers.log_levels import LogLevels
from goat_mcp.server.handlers.prompts import Prompts
from goat_mcp.server.handlers.resource_lists import ResourceLists
from goat_mcp.server.handlers.resources import Resources
from goat_mcp.server.handlers.subscriptions import Subscriptions
from goat_mcp.server.handlers.tool_list import LIST_TTL_MS, ToolList
from goat_mcp.server.http.token import read_or_create_token
from goat_mcp.server.requests import CalledTool, MayAnswer, Work
from goat_mcp.server.roots_request import ROOTS_INPUT, RootsRequest, brings_roots
from goat_mcp.server.sanitize_result import sanitized_result, sound
from goat_mcp.server.session_notices import SessionNotices
from goat_mcp.server.stdio.fast_path import FastPath
from goat_mcp.server.suspended_calls import KEPT_S, Pin, SuspendedCall, SuspendedCalls, no_pin
from goat_mcp.state.database import UsedTokens

if TYPE_CHECKING:  # there are tokens over HTTP only, and models where a client has one
    from goat_mcp.core.model import ChatModel

INSTRUCTIONS = (
    "goat-mcp gives you tools for a workspace (read, search, edit, run commands) and the tools of the user's other "
    "MCP servers, named mcp__SERVER__TOOL. Paths are absolute; @ stands for the workspace root. Read a file before "
    "you change it. Long commands become background tasks: read them with TaskOutput, end them with TaskStop."
)
INSTRUCTIONS_CHARS = 2_000
"""Hosts cut them there."""

AnswerT = TypeVar("AnswerT")


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
        return super().get_capabilities(
            NotificationOptions(tools_changed=True, resources_changed=True, prompts_changed=True),
            experimental_capabilities,
            extensions,
            protocol_version=protocol_version,
        )


@dataclass
class Adapter:
    """Turns MCP requests into pipeline calls for one gateway, over one kind of transport."""

    gateway: Gateway
    transport: Transport
    changes: ChangeHub = field(init=False)
    parked_for_s: float = KEPT_S
    parked: SuspendedCalls = field(init=False)
    tells_newcomers: bool = False
    """Whether who connects holds lists of a process before this one (`server.restart`)."""

    def __post_init__(self) -> None:
        used = UsedTokens(self.gateway.database, self.parked_for_s)
        self.parked = SuspendedCalls(self.parked_for_s, None if self.transport == "stdio" else used.first_use)
        self._who = CallerIdentity(self.transport, ClientProfiles(self.gateway.settings.profile_of_client))
        self._roots = RootsRequest(self.gateway, self.transport)
        self._log_levels = LogLevels()
        self._client_roots = ClientRoots()
        self._notices: dict[str, SessionNotices] = {}
        self.changes = ChangeHub(self._who.principal, lambda: self.gateway.resources.looks, came=self._came)
        self.gateway.announcements.listen(self.changes.resource_changed, self.changes.is_watched)
        tools = ToolList(self.gateway, self.changes, self._who, self._roots, self)
        lists = ResourceLists(self.gateway, self._list_changed)
        resources = Resources(self.gateway, lists, self)
        prompts = Prompts(self.gateway, lists, self)
        watching = Subscriptions(self.gateway, self.changes, resources, self)
        self.gateway.registry.on_change(lambda _: self.changes.tools_changed())
        self.gateway.lists_outdated = partial(self._outdated, lists)
        self.server = _Server(
            "goat-mcp",
            version=__version__,
            title="goat-mcp",
            instructions=INSTRUCTIONS + self.gateway.more_instructions(INSTRUCTIONS_CHARS - len(INSTRUCTIONS)),
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
        # Not by a parameter: the SDK warns of it, for the stateless era has no such request.
        self.server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, self._set_log_level)
        self.server.add_notification_handler(
            "notifications/roots/list_changed", types.NotificationParams, self._roots_changed
        )
        self._seal = RequestStateBoundary(self._security(), default_audience="goat-mcp")
        chaining = Chaining(self.gateway.instance, self.gateway.upstreams.path_of)
        self.server.middleware += [chaining.pass_on, self.changes.track, tools.once, self._seal]

    def _security(self) -> RequestStateSecurity:
        """Over HTTP the next request may come to another process that serves the same state directory."""
        if self.transport == "stdio":
            return RequestStateSecurity.ephemeral(ttl=self.parked_for_s)
        key = read_or_create_token(self.gateway.state.folder("http") / "request-state.key")
        return RequestStateSecurity(keys=[key], ttl=self.parked_for_s)

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """What lives beside the requests, until cancelled: notices of changes, and calls that wait for an answer."""
        async with anyio.create_task_group() as group:
            await group.start(self.parked.run)
            group.start_soon(self.changes.run)
            task_status.started()

    def short_calls(self) -> FastPath:
        """The short way of one connection over stdio."""
        return FastPath(self.server, self._call_tool, self._seal)

    def _outdated(self, lists: ResourceLists) -> None:
        self.changes.tools_changed()
        lists.compare()

    def _list_changed(self, kind: Kind) -> None:
        self.changes.list_changed("prompts" if kind == "prompts" else "resources")

    async def _call_tool(self, ctx: Context, params: CalledTool) -> Any:
        if (question := await self._roots.before(ctx, params)) is not None:
            return question
        rights = self._who.rights(ctx)
        called = self.gateway.arrival.target_name(params.name, params.arguments or {}, rights)

        async def work(context: ToolContext) -> ToolResult:
            return await self.gateway.call(params.name, params.arguments or {}, context)

        pin = partial(self.gateway.arrival.definition_of, params.name, params.arguments or {}, rights)
        outcome = await self.converse(ctx, params, work, pin)
        if isinstance(outcome, types.InputRequiredResult):
            return outcome
        if outcome.error_code == ErrorCode.TOOL_NOT_FOUND and called == params.name:
            raise MCPError(code=types.INVALID_PARAMS, message=outcome.text)
        answer = outcome.wire(structured_always=self.gateway.settings.output.structured == "always")
        if is_plain_text(answer):
            return answer
        answer = sanitized_result(answer)
        if self.gateway.catalog.of(rights).source_of(called) in (BUILTIN_SOURCE, None):
            return answer
        return downgraded_result(answer, ctx.protocol_version)

    async def converse(
        self, ctx: Context, params: MayAnswer, work: Work, pin: Pin = no_pin
    ) -> ToolResult | types.InputRequiredResult:
        """In the era without a way back the call may be left while its client answers a question (design D2)."""

        async def body(dialogue: ClientChannel) -> ToolResult:
            context = self._context(ctx, dialogue)
            try:
                return await work(context)
            finally:
                if isinstance(context.client, ChannelClient):
                    context.client.is_over = True

        return await self.relayed(self._converse(ctx, params, body, pin))

    async def relayed(self, outcome: Awaitable[AnswerT]) -> AnswerT:
        try:
            return await outcome
        except UpstreamError as refused:
            message = visible_surrogates(refused.message)
            raise MCPError(code=refused.code, message=message, data=sound(refused.data)) from None

    async def _converse(
        self,
        ctx: Context,
        params: MayAnswer,
        body: Callable[[ClientChannel], Awaitable[ToolResult]],
        pin: Pin,
    ) -> ToolResult | types.InputRequiredResult:
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            direct = DirectChannel(ctx)
            return await (body(direct) if ctx.request is None else while_open(ctx.request, direct, body(direct)))
        principal = self._who.principal()
        owner = self._who.session_key(ctx, principal)
        if params.request_state is not None:
            answers = params.input_responses or {}
            return await self.parked.resume(ctx, owner, principal, params.request_state, answers, body, pin=pin)
        capabilities = ctx.session.client_capabilities
        if capabilities is None or not (capabilities.sampling or capabilities.elicitation or capabilities.roots):
            return await body(DirectChannel(ctx))
        rounds = 1 if brings_roots(ctx.params or {}) else 0
        return await self.parked.start(ctx, owner, principal, body, pin=pin, rounds_before=rounds)

    def _context(self, ctx: Context, dialogue: ClientChannel) -> ToolContext:
        meta: Mapping[str, Any] = (ctx.params or {}).get("_meta") or {}
        wants_progress = meta.get("progressToken") is not None
        progress = _rising(dialogue.report_progress) if wants_progress else no_progress
        principal = self._who.principal()
        session_key = self._who.session_key(ctx, principal)
        sampling = dialogue.capabilities.sampling if dialogue.capabilities is not None else None
        return ToolContext(
            call_id=secrets.token_hex(8),
            session_key=session_key,
            principal=principal,
            rights=self._who.rights(ctx),
            meta=meta,
            client=ChannelClient(
                dialogue,
                self._log_levels.of(session_key, ctx.protocol_version, meta),
                _given(ctx),
                self._client_roots,
                session_key,
                self._notices.get(session_key),
            ),
            progress=progress,
            wants_progress=wants_progress,
            ask=asker(dialogue, progress if wants_progress else None),
            host_model=_host_model(dialogue, sampling) if sampling is not None else None,
            client_waits_since_s=(lambda: dialogue.round_started_s) if isinstance(dialogue, SuspendedCall) else None,
        )

    def _came(self, ctx: Context) -> Callable[[], None]:
        """A handshake client has connected. Returns what to do when it is gone."""
        session_key = self._who.session_key(ctx, self._who.principal())
        version = ctx.protocol_version
        if self.tells_newcomers:
            for kind in ("tools", "prompts", "resources"):
                self.changes.list_changed(kind)
        self._notices[session_key] = SessionNotices(ctx.session, lambda: self._log_levels.of(session_key, version, {}))

        def gone() -> None:
            self._notices.pop(session_key, None)
            self._client_roots.forget(session_key)
            self._log_levels.forget(session_key)
            self.gateway.upstreams.session_ended(session_key)

        return gone

    async def _roots_changed(self, ctx: Context, params: types.NotificationParams) -> None:
        session_key = self._who.session_key(ctx, self._who.principal())
        self._client_roots.forget(session_key)
        self.gateway.client_roots_changed(session_key)

    async def _set_log_level(self, ctx: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
        self._log_levels.set(self._who.session_key(ctx, self._who.principal()), params.level)
        return types.EmptyResult()

    def context(self, ctx: Context) -> ToolContext:
        return self._context(ctx, DirectChannel(ctx))

    def reader(self, ctx: Context) -> ToolContext:
        """Who asks."""
        principal = self._who.principal()
        session_key = self._who.session_key(ctx, principal)
        return ToolContext(call_id="", session_key=session_key, principal=principal, rights=self._who.rights(ctx))


def _given(ctx: Context) -> Mapping[str, Any]:
    """Answers to questions that were not ours: a question of ours comes with a state that seals it."""
    params = ctx.params or {}
    answers = params.get("inputResponses")
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS or params.get("requestState") is not None:
        return {}
    if not isinstance(answers, Mapping):
        return {}
    return {key: answer for key, answer in cast("Mapping[str, Any]", answers).items() if key != ROOTS_INPUT}


def _host_model(dialogue: ClientChannel, sampling: types.SamplingCapability) -> ChatModel:
    # Only who offers a model pays for what asking it takes.
    from goat_mcp.server.host_model import HostModel

    return HostModel(dialogue, sampling)


def _rising(report: Progress) -> Progress:
    """Report to the client, never going back: the specification wants each value above the one before."""
    highest = -1.0

    async def rising(done: float, total: float | None = None, message: str | None = None) -> None:
        nonlocal highest
        if done > highest:
            highest = done
            await report(done, total, message)

    return rising
