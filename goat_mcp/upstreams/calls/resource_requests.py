"""Requests to one upstream that are no tool calls: reads, prompts, completions; within its limits and in time.

What comes is passed on as it came (REL-1), but for what belongs to the hop.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar, cast

import anyio
import mcp_types as types

from goat_mcp.core.calling_client import RootsOf, no_roots
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError, UpstreamError
from goat_mcp.files.documents.visible_text import make_visible
from goat_mcp.upstreams.call_timeout import CallClock
from goat_mcp.upstreams.calls.attempts import (
    ConnectionProvider,
    ElicitLogin,
    error_message,
    in_rounds,
    with_login,
    with_retry,
)
from goat_mcp.upstreams.calls.upstream_limiter import Permit, UpstreamLimiter
from goat_mcp.upstreams.config.entry import UpstreamConfig
from goat_mcp.upstreams.envelope import strip_result
from goat_mcp.upstreams.faults import LoginRequired, TransportFault
from goat_mcp.upstreams.progress import ProgressRelay

if TYPE_CHECKING:  # few entries want it
    from goat_mcp.upstreams.calls.visible_results import VisibleResults
    from goat_mcp.upstreams.transports.connection import Connection

SHARE = 4
"""These requests get one in so many of an upstream's permits: however slow they are, tool calls have the others."""
MAX_URI_CHARS = 8_000
T = TypeVar("T")
ConnectionFor = Callable[[ToolContext | None], AbstractAsyncContextManager[ConnectionProvider]]
"""The way to a connection for the client behind a request; None if there is none."""
Admit = Callable[[str, Mapping[str, Any], "Connection", float], Awaitable[None]]
"""Waits for the lists that a request needs. Raises `ToolError(QUARANTINED)` for what may not be used as it is now."""

Check = Callable[[Mapping[str, Any]], Awaitable[None]]


class ResourceRequests:
    """`limiter` is that of the upstream's tool calls, too."""

    def __init__(
        self,
        config: UpstreamConfig,
        connection_for: ConnectionFor,
        limiter: UpstreamLimiter,
        roots: RootsOf = no_roots,
        *,
        admit: Admit,
        visible: VisibleResults | None = None,
        elicit_login: ElicitLogin | None = None,
    ) -> None:
        """`visible`: what makes the text of results visible, where it is to be; `elicit_login`: see `with_login`."""
        self._config = config
        self._roots = roots
        self._connection_for = connection_for
        self._limiter = limiter
        self._admit = admit
        self._visible = visible
        self._elicit_login = elicit_login
        self._share = UpstreamLimiter(config.name, max(1, config.concurrency // SHARE), "requests other than calls")

    @property
    def server(self) -> str:
        """The part that names of the upstream's tools have of it."""
        return self._config.server

    async def read(self, uri: str, ctx: ToolContext, check: Check | None = None) -> Mapping[str, Any]:
        """The upstream's result of `resources/read`. Raises `ToolError`, `UpstreamError`.

        `check` gets it as it came, before its text is made visible, and raises what keeps it from the caller.
        """
        return await self.read_within(uri, ctx.wait_left_s(), ctx.meta, ctx, check)

    async def read_within(
        self,
        uri: str,
        max_wait_s: float,
        meta: Mapping[str, Any],
        ctx: ToolContext | None = None,
        check: Check | None = None,
    ) -> Mapping[str, Any]:
        """As `read`, for whoever has no call of a client."""
        _check_uri(uri)
        params = {"uri": uri, "_meta": meta}
        raw = await self._ask("resources", "resources/read", params, uri, max_wait_s, "send this resource", ctx)
        if check is not None:
            await check(raw)
        return self._with_list(raw, "contents")

    async def read_for(
        self, caller: ToolContext | None, uri: str, max_wait_s: float, meta: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """As `read_within`; where a login is wanted first, the client behind `caller` is offered one."""
        return await self._offering(caller, lambda wait_s: self.read_within(uri, wait_s, meta), max_wait_s)

    async def run_for(
        self,
        caller: ToolContext | None,
        run: Callable[[Connection], Awaitable[T]],
        max_wait_s: float,
        what: str,
    ) -> T:
        """As `run`, for nobody's connection; a login is offered as in `read_for`."""
        return await self._offering(caller, lambda wait_s: self.run(run, wait_s, what), max_wait_s)

    async def _offering(
        self, caller: ToolContext | None, send: Callable[[float], Awaitable[T]], max_wait_s: float
    ) -> T:
        if caller is None or self._elicit_login is None:
            return await send(max_wait_s)
        return await with_login(self._offer, caller, lambda waiting: send(min(max_wait_s, waiting.wait_left_s())))

    async def _offer(self, ctx: ToolContext, wanted: LoginRequired) -> None:
        assert self._elicit_login is not None
        with ctx.while_elsewhere():
            await self._elicit_login(ctx, wanted)

    async def get_prompt(self, name: str, arguments: Mapping[str, Any] | None, ctx: ToolContext) -> Mapping[str, Any]:
        """The upstream's result of `prompts/get`, by the upstream's own name. Raises like `read`."""
        given = {} if arguments is None else {"arguments": arguments}
        params = {"name": name, **given, "_meta": ctx.meta}
        raw = await self._ask("prompts", "prompts/get", params, name, ctx.wait_left_s(), "send this prompt", ctx)
        return self._with_list(raw, "messages")

    async def complete(self, params: Mapping[str, Any], ctx: ToolContext) -> Mapping[str, Any] | None:
        """The upstream's result of `completion/complete`; None where it completes nothing. Raises like `read`."""

        async def run(connection: Connection) -> Mapping[str, Any] | None:
            if not connection.offers("completions"):
                return None
            await self._admit("completion/complete", params, connection, ctx.wait_left_s())
            try:
                return await connection.ask("completion/complete", params)
            except UpstreamError as error:
                if error.code == types.METHOD_NOT_FOUND:
                    return None  # it said that it had some
                raise

        raw = await self.run(run, ctx.wait_left_s(), "complete this", ctx)
        return None if raw is None else self._shown(strip_result(raw))

    async def _ask(
        self,
        capability: str,
        method: str,
        params: Mapping[str, Any],
        name: str,
        max_wait_s: float,
        what: str,
        ctx: ToolContext | None,
    ) -> Mapping[str, Any]:
        client = ctx.client if ctx is not None else None
        progress = ProgressRelay(ctx.progress) if ctx is not None and ctx.wants_progress else None

        async def send(more: Mapping[str, Any]) -> dict[str, Any]:
            async def run(connection: Connection) -> dict[str, Any]:
                if not connection.offers(capability):
                    raise ToolError(
                        ErrorCode.NOT_FOUND,
                        f"upstream {self._config.name} offers no {capability}",
                        "ListMcpResources shows what other servers offer." if capability == "resources" else "",
                        facts={"upstream": self._config.name},
                    )
                await self._admit(method, params, connection, max_wait_s if ctx is None else ctx.wait_left_s())
                on_progress = progress.report if progress is not None else None
                return await connection.ask(
                    method, params, name=name, more=more, client=client, on_progress=on_progress
                )

            if ctx is None:
                return await self.run(run, max_wait_s, what)
            if self._elicit_login is None:
                return await self.run(run, ctx.wait_left_s(), what, ctx)
            return await with_login(
                self._offer, ctx, lambda waiting: self.run(run, waiting.wait_left_s(), what, waiting)
            )

        try:
            return await in_rounds(self._config.name, send, client, allow=self._config.allow, roots=self._roots)
        finally:
            if progress is not None:
                progress.end()

    async def run(
        self,
        run: Callable[[Connection], Awaitable[T]],
        max_wait_s: float,
        what: str,
        ctx: ToolContext | None = None,
    ) -> T:
        """Run it with a permit and in time; again on a new connection if the first was lost."""
        name = self._config.name
        until_s = anyio.current_time() + max_wait_s

        def left_s() -> float:
            return max(0.0, until_s - anyio.current_time())

        async def run_in_time(connection: Connection, *permits: Permit) -> T:
            limit_s = min(left_s(), self._config.timeout_s)
            clock = CallClock(limit_s, limit_s)
            caller = connection.callers.one(ctx, clock, *permits) if ctx is not None else nullcontext()
            with caller, clock.scope:
                return await run(connection)
            raise ToolError(
                ErrorCode.TIMEOUT,
                f"upstream {name} did not {what} within {limit_s:.3g} s",
                "Call again later.",
                facts={"upstream": name},
            )

        try:
            async with self._connection_for(ctx) as provider:
                provider.check()
                principal = ctx.principal if ctx is not None else ""
                async with (
                    self._share.permit(left_s(), principal) as share,
                    self._limiter.permit(left_s(), principal) as permit,
                ):

                    async def run_there(connection: Connection) -> T:
                        return await run_in_time(connection, share, permit)

                    return await with_retry(provider, run_there, left_s, is_read=True)
        except UpstreamError as error:
            if self._visible is None:
                raise
            raise self._visible.of_error(error) from None
        except TransportFault as failure:
            raise error_message(self._config, failure.fault, is_call=False) from None
        except ToolError as error:
            if error.code is not ErrorCode.UPSTREAM_DOWN:
                raise
            message = error.message.removesuffix("; the call did not run")
            raise ToolError(ErrorCode.UPSTREAM, message, error.suggestion, facts=error.facts) from None

    def _with_list(self, raw: Mapping[str, Any], member: str) -> Mapping[str, Any]:
        """The result without what belongs to the hop, once it is one: `member` must be a list of objects."""
        name = self._config.name
        kind = raw.get("resultType", "complete")
        if kind != "complete":
            raise ToolError(
                ErrorCode.UPSTREAM,
                f"upstream {name} answered with {make_visible(str(kind)[:40])!r}, which goat-mcp does not relay",
                "This needs a dialogue with the client; take another one.",
                facts={"upstream": name},
            )
        listed = raw.get(member)
        if not isinstance(listed, list) or not all(isinstance(one, dict) for one in cast("list[Any]", listed)):
            raise ToolError(
                ErrorCode.UPSTREAM, f"upstream {name} answered without a list of {member}", facts={"upstream": name}
            )
        return self._shown(strip_result(raw))

    def _shown(self, result: Mapping[str, Any]) -> Mapping[str, Any]:
        return result if self._visible is None else self._visible.of_request(result)


def _check_uri(uri: str) -> None:
    """Refuse what an upstream over HTTP, where the URI is a header too, would answer by closing the connection."""
    problem = f"has {len(uri):,} characters, at most {MAX_URI_CHARS:,} are sent" if len(uri) > MAX_URI_CHARS else ""
    try:
        uri.encode()
    except UnicodeEncodeError:
        problem = "has half a surrogate pair in it, which no UTF-8 can carry"
    if problem:
        raise ToolError(ErrorCode.INPUT, f"uri: {problem}", "Take a URI as ListMcpResources shows it.")
