"""One call's way back to its client: a request in the handshake era, a suspended call later. Tools see neither."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from pydantic import BaseModel, ValidationError

if TYPE_CHECKING:
    from goat_mcp.server.travelling_state import Opening

AnswerT = TypeVar("AnswerT", bound=BaseModel)
Question = types.ElicitRequest | types.CreateMessageRequest | types.ListRootsRequest
Context = ServerRequestContext[Any, Any]
T = TypeVar("T")
WATCHED_AFTER_S = 0.05
"""When a stream begins to be watched. Most calls are over by then, and cost no task of their own."""
STREAMS = "goat_mcp.streams"
"""The key of a request's ASGI scope that holds its session's streams, if its client can come back for a lost one."""


class MayAnswer(Protocol):
    """The params of a request that may come again with answers."""

    @property
    def input_responses(self) -> Mapping[str, Any] | None: ...

    @property
    def request_state(self) -> str | None: ...


class CalledTool(MayAnswer, Protocol):
    """The params of `tools/call`."""

    @property
    def name(self) -> str: ...

    @property
    def arguments(self) -> Mapping[str, Any] | None: ...


class ClientChannel(ABC):
    """Puts requests to the client behind one call. `_ctx` is the request that the call came by, or goes on by."""

    _ctx: Context
    holds_the_request_open: ClassVar[bool]
    """Whether the client's call waits, and may time out, while it is asked."""
    is_left = False
    """Whether the call goes on as a background task: its stream has its last message."""

    @property
    def capabilities(self) -> types.ClientCapabilities | None:
        return self._ctx.session.client_capabilities

    @property
    def declared(self) -> Mapping[str, Any]:
        """The same, as it travels."""
        present = self.capabilities
        return {} if present is None else present.model_dump(by_alias=True, exclude_none=True, mode="json")

    @property
    def protocol_version(self) -> str:
        return self._ctx.protocol_version

    @property
    def request(self) -> Context:
        """The request that the call came by, or goes on by."""
        return self._ctx

    @abstractmethod
    async def ask(self, request: Question, answer: type[AnswerT], opening: Opening | None = None) -> AnswerT:
        """Raises `MCPError` if the client refuses, or answers something else.

        `opening`: if the call may be started again with the answer.
        """

    @abstractmethod
    async def ask_all(self, requests: Mapping[str, Question]) -> Mapping[str, dict[str, Any]]:
        """Put several at once, on behalf of an upstream: the raw answers under the same keys. Raises like `ask`."""

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification of an upstream's on the call's own stream."""
        notification = types.server_notification_adapter.validate_python({"method": method, "params": dict(params)})
        await self._ctx.session.send_notification(notification, related_request_id=self._ctx.request_id)

    async def report_progress(
        self,
        done: float,
        total: float | None = None,
        message: str | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        if not meta:
            await self._ctx.session.report_progress(done, total, message)
            return
        # The SDK's reporter has no room for it.
        given: Mapping[str, Any] = (self._ctx.params or {}).get("_meta") or {}
        report = {"progressToken": given.get("progressToken"), "progress": done, "total": total, "message": message}
        present = {name: value for name, value in report.items() if value is not None}
        await self.notify("notifications/progress", {**present, "_meta": dict(meta)})


class DirectChannel(ClientChannel):
    """Handshake era: a request of ours on the call's own stream."""

    holds_the_request_open = True

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._open_questions = 0

    @property
    def is_asking(self) -> bool:
        """Whether a question of our own is open. One that nobody is left to answer ends its call by itself."""
        return self._open_questions > 0

    async def ask(self, request: Question, answer: type[AnswerT], opening: Opening | None = None) -> AnswerT:
        self._open_questions += 1
        try:
            return await self._put(request, answer)
        finally:
            self._open_questions -= 1

    async def _put(self, request: Question, answer: type[AnswerT]) -> AnswerT:
        metadata = ServerMessageMetadata(related_request_id=self._ctx.request_id)
        outcome: AnswerT | Exception = MCPError(types.CONNECTION_CLOSED, "the client is gone")
        async with anyio.create_task_group() as group:
            if self._ctx.request is not None:
                group.start_soon(_cancel_when_gone, self._ctx.request, group.cancel_scope)
            try:
                outcome = await self._ctx.session.send_request(request, answer, metadata=metadata)
            except ValidationError:
                outcome = _unreadable(request)
            except Exception as refused:
                outcome = refused
            group.cancel_scope.cancel()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def ask_all(self, requests: Mapping[str, Question]) -> Mapping[str, dict[str, Any]]:
        # One after the other: each is a form of its own to the person.
        return {key: (await self._put(request, RawAnswer)).raw() for key, request in requests.items()}


class AskedEnough(MCPError):
    """A call has asked its client so many times that the client would give it up at the next."""

    def __init__(self, times: int) -> None:
        super().__init__(types.INVALID_REQUEST, f"this call has asked its client {times} times already")


class RawAnswer(BaseModel, extra="allow"):
    """An answer as it came: whoever asked reads it."""

    def raw(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


async def _cancel_when_gone(request: Any, waiting: anyio.CancelScope) -> None:
    """A stream that broke off cannot be resumed: nobody will see the question again, nor what its call returns."""
    await gone(request)
    waiting.cancel()


async def gone(request: Any) -> None:
    """Return when the client has closed the stream of this HTTP request."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def parsed(request: Question, given: Any, answer: type[AnswerT]) -> AnswerT:
    """An answer that came along with a repeated request. Raises `MCPError` for one of another kind."""
    try:
        return answer.model_validate(given.model_dump(by_alias=True, exclude_none=True))
    except (ValidationError, AttributeError):
        raise _unreadable(request) from None


def _unreadable(request: Question) -> MCPError:
    return MCPError(types.INVALID_PARAMS, f"the client's answer to {request.method} cannot be read")


async def while_open(request: Any, channel: DirectChannel, call: Awaitable[T]) -> T:
    """The result of a handshake client's call over HTTP. Once its stream is closed, and its client does not come back
    for it, nobody will see it, and the call is cancelled (FLW-2). Raises `MCPError` then. In the stateless era the SDK
    itself cancels such a request."""
    loop = asyncio.get_running_loop()
    watch: list[asyncio.Task[None]] = []
    with anyio.CancelScope() as scope:

        async def cancel_when_gone() -> None:
            await gone(request)
            if (streams := request.scope.get(STREAMS)) is not None:
                await streams.until_abandoned()
            if not channel.is_asking and not channel.is_left:
                scope.cancel()

        timer = loop.call_later(WATCHED_AFTER_S, lambda: watch.append(loop.create_task(cancel_when_gone())))
        try:
            return await call
        finally:
            timer.cancel()
            for task in watch:
                task.cancel()
    raise MCPError(types.CONNECTION_CLOSED, "the client is gone")
