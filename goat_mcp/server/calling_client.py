"""The client behind a call, as upstreams and tools reach it: its forms and roots, its log messages, its own model."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError
from mcp_types import LOG_LEVEL_META_KEY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

from goat_mcp.core.calling_client import ClientRefused, ClientRequest, NotificationTarget, RequestNotSent
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.lazy import Lazy
from goat_mcp.core.model import ModelReply, ModelRequest
from goat_mcp.server.cancellations import Cancellations
from goat_mcp.server.client_channel import AskedEnough, ClientChannel, Question
from goat_mcp.server.client_roots import ClientRoots, local_folders

_questions: Lazy[TypeAdapter[Question]] = Lazy(lambda: TypeAdapter(Question))
_blocks: Lazy[TypeAdapter[list[Any]]] = Lazy(lambda: TypeAdapter(list[types.SamplingMessageContentBlock]))
DEFAULT_LEVEL = "info"
"""Of a handshake client that set none; the protocol leaves it to the server."""
MAX_SESSIONS = 1000


class DeclaredCapabilities:
    """What clients can do, as it travels: worked out once for as long as the client that calls is the same."""

    def __init__(self) -> None:
        self._last: tuple[types.ClientCapabilities | None, Mapping[str, Any]] | None = None

    def of(self, channel: ClientChannel) -> Mapping[str, Any]:
        present, last = channel.capabilities, self._last
        if last is None or last[0] is not present:
            last = self._last = (present, channel.declared)
        return last[1]


class ChannelClient:
    """A `CallingClient` over one call's channel. `log_level`: what the client set, or wants for this call.

    `answers` came with the request, to questions that were not ours.
    """

    def __init__(
        self,
        channel: ClientChannel,
        log_level: str,
        answers: Mapping[str, Any],
        known_roots: ClientRoots,
        declared: DeclaredCapabilities,
        session_key: str,
        notices: NotificationTarget | None = None,
        cancellations: Cancellations | None = None,
    ) -> None:
        self.notices = notices
        self._cancellations = cancellations
        self._channel = channel
        self._known_roots = known_roots
        self._session_key = session_key
        self.log_level = log_level
        self.given = answers
        self._declared = declared
        self._is_over = False

    @property
    def protocol_version(self) -> str:
        return self._channel.protocol_version

    @property
    def is_stateless(self) -> bool:
        return self._channel.protocol_version in MODERN_PROTOCOL_VERSIONS

    @property
    def capabilities(self) -> Mapping[str, Any]:
        # Asked for each time: another request of the client's may go on with the call.
        return self._declared.of(self._channel)

    @property
    def cancellation(self) -> Mapping[str, Any]:
        return {} if self._cancellations is None else self._cancellations.of(self._channel.request)

    async def ask(self, requests: Mapping[str, ClientRequest]) -> Mapping[str, dict[str, Any]]:
        try:
            questions = {key: self._question(request) for key, request in requests.items()}
        except ValidationError as invalid:
            first = invalid.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise ClientRefused(types.INVALID_PARAMS, f"no valid request: {where}: {first['msg']}") from None
        try:
            return await self._channel.ask_all(questions)
        except AskedEnough as enough:
            raise RequestNotSent(enough.error.code, enough.error.message) from None
        except MCPError as refused:
            raise ClientRefused(refused.error.code, refused.error.message, refused.error.data) from None

    def _question(self, request: ClientRequest) -> Question:
        params = dict(request.params)
        if params.get("mode") == "url" and not self.is_stateless:
            # Revisions before 2026-07-28 want one; since then upstreams give none.
            params.setdefault("elicitationId", f"goat-{secrets.token_hex(8)}")
        return _questions().validate_python({"method": request.method, "params": params or None})

    @property
    def known_roots(self) -> Sequence[Path] | None:
        return self._known_roots.of(self._session_key)

    async def roots(self) -> Sequence[Path]:
        known = self.known_roots
        if known is None:
            try:
                answers = await self.ask({"roots": ClientRequest("roots/list", {})})
                known = local_folders(answers["roots"])
            except ClientRefused:
                known = ()
            if not self.is_stateless:  # that era has no sessions: each request may come from another folder
                self._known_roots.keep(self._session_key, known)
        return known

    def call_ended(self) -> None:
        """The call has its result: what comes now is sent apart from it, if the era has a way for that."""
        self._is_over = True

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        if self._is_over:
            if self.notices is not None:
                await self.notices.notify(method, params)
            return
        try:
            await self._channel.notify(method, params)
        except (MCPError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            return


class SessionNotices:
    """The way to a handshake client outside its calls, for as long as its connection lasts. A `NotificationTarget`."""

    def __init__(self, session: ServerSession, level: Callable[[], str]) -> None:
        self._session = session
        self._level = level

    @property
    def log_level(self) -> str:
        return self._level()

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        notification = types.server_notification_adapter.validate_python({"method": method, "params": dict(params)})
        try:
            await self._session.send_notification(notification)
        except (MCPError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            return


class HostModel:
    """The client's own model through MCP sampling, a `ChatModel`. The client may ask its user before each reply."""

    def __init__(self, channel: ClientChannel, capability: types.SamplingCapability) -> None:
        self._channel = channel
        self.takes_tools = capability.tools is not None

    async def reply(self, request: ModelRequest) -> ModelReply:
        """Raises `ToolError(MODEL)` if the client or its user refuses."""
        tools = [
            types.Tool(name=tool.name, description=tool.description, input_schema=tool.input_schema)
            for tool in request.tools
        ]
        if tools and not self.takes_tools:
            raise ToolError(ErrorCode.MODEL, "this client's model takes no tools", "Configure agent.base_url instead.")
        params = types.CreateMessageRequestParams(
            messages=[
                types.SamplingMessage(role=message.role, content=_blocks().validate_python(list(message.content)))
                for message in request.messages
            ],
            max_tokens=request.max_tokens,
            system_prompt=request.system or None,
            model_preferences=types.ModelPreferences(hints=[types.ModelHint(name=request.model)])
            if request.model
            else None,
            tools=tools or None,
        )
        answer = types.CreateMessageResultWithTools if tools else types.CreateMessageResult
        try:
            result = await self._channel.ask(types.CreateMessageRequest(params=params), answer)
        except MCPError as refused:
            raise ToolError(
                ErrorCode.MODEL,
                f"the client's model gave no answer: {refused.error.message[:300]}",
                "Ask the user; a model of their own can be set with agent.base_url.",
            ) from None
        content = result.content if isinstance(result.content, list) else [result.content]
        blocks = json.loads(_blocks().dump_json(content, by_alias=True, exclude_none=True))
        return ModelReply(content=tuple(blocks), stop_reason=result.stop_reason or "endTurn", model=result.model)


class LogLevels:
    """The least level of log messages that each client wants (FLW-4): set once a session, or named by each request.

    By session key; the oldest are forgotten.
    """

    def __init__(self) -> None:
        self._levels: dict[str, str] = {}

    def set(self, session_key: str, level: str) -> None:
        self._levels.pop(session_key, None)
        self._levels[session_key] = level
        if len(self._levels) > MAX_SESSIONS:
            self._levels.pop(next(iter(self._levels)))

    def forget(self, session_key: str) -> None:
        """The session is over."""
        self._levels.pop(session_key, None)

    def of(self, session_key: str, protocol_version: str, meta: Mapping[str, Any]) -> str:
        """Empty if the client wants none: in the stateless era there is only what the request asks for."""
        if protocol_version in MODERN_PROTOCOL_VERSIONS:
            return str(meta.get(LOG_LEVEL_META_KEY) or "")
        return self._levels.get(session_key, DEFAULT_LEVEL)
