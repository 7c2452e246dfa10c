"""One live connection to an upstream: lists and calls as wire dictionaries. `connect` opens it.

When to connect, retry and give up is the supervisor's business; what clients see of a tool is not known here.
Uses the SDK's dispatcher, but not its `ClientSession`: results pass unmodelled (REL-1 to REL-4).
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NoReturn, cast

import anyio
import anyio.lowlevel
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import encode_header_value, find_invalid_x_mcp_header, mcp_param_headers, x_mcp_header_map
from mcp_types import CONNECTION_CLOSED, JSONRPCResponse

from goat_mcp.core.calling_client import CallingClient
from goat_mcp.core.errors import UpstreamError
from goat_mcp.upstreams.envelope import STATELESS_VERSION, cancelled_params, stamp_request
from goat_mcp.upstreams.faults import Fault, FaultKind, TransportFault
from goat_mcp.upstreams.listing.paging import Listed, drain, take_chained
from goat_mcp.upstreams.status import SharingStatus
from goat_mcp.upstreams.transports.callers import Callers
from goat_mcp.upstreams.transports.child_pipes import Answer, Outbox, StdioTransport
from goat_mcp.upstreams.transports.dispatcher import UpstreamDispatcher
from goat_mcp.upstreams.transports.notifications import UpstreamNotifications
from goat_mcp.upstreams.transports.progress_meta import OnProgress
from goat_mcp.upstreams.transports.server_requests import more_verbose

_SILENT_ENDS = ("SSE stream", "Connection closed")
_EVENT_TOO_LARGE = "SSE stream failed: Server-sent event exceeded"
_FAILED_TO_PARSE = "Failed to parse"
_NOTHING: Mapping[str, Any] = {}
_CANCEL_TIMEOUT_S = 2.0


@dataclass(eq=False)
class Connection:
    """Ready for calls from any task until `closed` is set."""

    version: str
    era_is_proved: bool
    announces_changes: bool
    closed: anyio.Event
    tools_changed: anyio.Event
    callers: Callers
    _dispatcher: UpstreamDispatcher
    _link: Any
    _is_http: bool
    _ids: itertools.count[int]
    capabilities: Mapping[str, Any] = field(default_factory=dict[str, Any])
    instructions: str = ""
    """As it sent them; for its pin only."""
    instance: str = ""
    """Our own id among gateways (CHN-2)."""
    peer_instance: str = ""
    """The upstream's, where it is a gateway too."""
    _outbox: Outbox | None = None
    _log_level_set: str = "info"
    _param_headers: dict[str, tuple[Mapping[str, Any], dict[tuple[str, ...], str]]] = field(
        default_factory=dict[str, "tuple[Mapping[str, Any], dict[tuple[str, ...], str]]"]
    )
    notices: UpstreamNotifications = field(default_factory=UpstreamNotifications)

    @property
    def stateless(self) -> bool:
        return self.version == STATELESS_VERSION

    def end(self) -> None:
        """Nothing more will come: whoever waits learns it."""
        self.closed.set()
        self._link.direct.end()

    def last_words(self) -> str:
        """How the connection ended, for people."""
        return self._link.last_words()

    def junk(self) -> tuple[int, int]:
        """Lines that were no messages, and frames that were too large."""
        return self._link.junk()

    @property
    def sharing(self) -> SharingStatus | None:
        """Who shares its process, if its entry is shared."""
        return self._link.sharing if isinstance(self._link, StdioTransport) else None

    @property
    def has_moved(self) -> bool:
        """Whether it ended because this session is to have a process of its own: nothing has failed."""
        return isinstance(self._link, StdioTransport) and self._link.has_moved

    @property
    def dropped_notices(self) -> int:
        """Those that came faster than they are read."""
        return self._link.limits.dropped

    def stderr_text(self) -> str:
        return self._link.stderr_text()

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        meta: Mapping[str, Any],
        input_schema: Mapping[str, Any],
        more: Mapping[str, Any] = _NOTHING,
        client: CallingClient | None = None,
        on_progress: OnProgress | None = None,
        extensions: Mapping[str, Any] = _NOTHING,
    ) -> dict[str, Any]:
        """The raw result. Raises `UpstreamError` for an upstream's own error, `TransportFault` for one of the link.

        `more` are members beside name and arguments; `client` is whom the upstream may ask and tell meanwhile.
        `extensions` are those of the protocol that this request declares, where each does so for itself.
        """
        params = {"name": name, "arguments": arguments, "_meta": meta, **(more if self.stateless else _NOTHING)}
        if self.callers.has_new_roots:
            await self._announce_new_roots(client)
        log_level = await self._log_level(client) if client is not None else ""
        if self._outbox is not None and on_progress is None:
            result = await self._call_directly(self._outbox, self._link, params, client, extensions)
        else:
            headers: dict[str, str] = {}
            if self._is_http and self.stateless:
                headers = {"mcp-name": encode_header_value(name), **self._mirrored(name, arguments, input_schema)}
            if self._is_http and on_progress is None and self._link.direct.is_used:
                result = await self._post_directly(params, headers, client, extensions)
            else:
                result = await self.request(
                    "tools/call",
                    params,
                    headers=headers,
                    client=client,
                    on_progress=on_progress,
                    extensions=extensions,
                )
        if log_level and client is not None:
            # What it said before its answer is heard before its answer.
            await self.callers.flush(client)
        return result

    async def _announce_new_roots(self, client: CallingClient | None) -> None:
        """Tell a server of the handshake era that its client has other roots now: while the client can be asked."""
        if not self.stateless and await self.callers.take_new_roots(client):
            options: CallOptions = {"headers": {"mcp-protocol-version": self.version}} if self._is_http else {}
            await self._dispatcher.notify("notifications/roots/list_changed", None, options)

    async def _log_level(self, client: CallingClient) -> str:
        """The level this client wants, which an upstream of the handshake era is told where it wants more than others.

        Each client is told only what it wants itself.
        """
        stateless = self.stateless
        level = client.log_level if stateless or self.offers("logging") else ""
        if level and not stateless and more_verbose(level, self._log_level_set):
            self._log_level_set = level
            with suppress(UpstreamError):
                await self.request("logging/setLevel", {"level": level})
        return level

    def _stamped(
        self, params: Mapping[str, Any], client: CallingClient | None, extensions: Mapping[str, Any] = _NOTHING
    ) -> dict[str, Any]:
        if not self.stateless:
            return stamp_request(params, stateless=False, instance=self.instance, is_gateway=bool(self.peer_instance))
        level = client.log_level if client is not None else ""
        declared = self.callers.declared_for(client)
        return stamp_request(
            params,
            stateless=True,
            capabilities={**declared, "extensions": extensions} if extensions else declared,
            log_level=level,
            instance=self.instance,
            is_gateway=bool(self.peer_instance),
        )

    async def _call_directly(
        self,
        outbox: Outbox,
        link: StdioTransport,
        params: Mapping[str, Any],
        client: CallingClient | None,
        extensions: Mapping[str, Any],
    ) -> dict[str, Any]:
        request_id = next(self._ids)
        try:
            stamped = self._stamped(params, client, extensions)
            answer = await link.direct.ask(outbox, request_id, "tools/call", stamped, client)
            if answer is None:
                kind = FaultKind.LOST if link.was_written(request_id) else FaultKind.UNREACHABLE
                raise TransportFault(Fault(kind, self.last_words()))
            return self._result_of(answer)
        finally:
            link.forget(request_id)

    async def _post_directly(
        self,
        params: Mapping[str, Any],
        headers: Mapping[str, str],
        client: CallingClient | None,
        extensions: Mapping[str, Any],
    ) -> dict[str, Any]:
        request_id = next(self._ids)
        # A request that was cancelled before it began is not sent at all.
        await anyio.lowlevel.checkpoint_if_cancelled()
        try:
            answer = await self._link.direct.ask(
                request_id, self._stamped(params, client, extensions), self._headers("tools/call", headers)
            )
        except asyncio.CancelledError:
            if not self.stateless:  # the other era takes the broken stream for it
                cancelled = cancelled_params(request_id, client)
                with anyio.move_on_after(_CANCEL_TIMEOUT_S, shield=True):
                    await self._dispatcher.notify("notifications/cancelled", cancelled)
            raise
        if answer is None:
            raise TransportFault(Fault(FaultKind.LOST, "Connection closed"))
        return self._result_of(answer)

    def _result_of(self, answer: Answer) -> dict[str, Any]:
        """Raises what an error answer stands for."""
        if isinstance(answer, JSONRPCResponse):
            return self._result(answer.result)
        if (fault := self._link.marks.read(answer.error.data)) is not None:
            raise TransportFault(fault)
        raise UpstreamError(answer.error.code, answer.error.message, answer.error.data)

    async def list_tools(self) -> Listed:
        """Every page of `tools/list`, within bounds (AGG-4). Raises like `call_tool`."""
        listed = Listed()
        await self.list_all("tools/list", "tools", listed)
        return listed

    async def list_all(self, method: str, member: str, listed: Listed) -> None:
        """Drain any list, page by page into `listed`. Raises like `call_tool`."""
        await drain(partial(self.request, method), member, listed)
        if self.peer_instance:
            take_chained(listed, member, instance=self.instance, peer=self.peer_instance)

    async def ask(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        name: str = "",
        more: Mapping[str, Any] = _NOTHING,
        client: CallingClient | None = None,
        on_progress: OnProgress | None = None,
        extensions: Mapping[str, Any] = _NOTHING,
    ) -> dict[str, Any]:
        """The raw result of a request about `name`: a URI, or a prompt. Raises like `call_tool`."""
        await self._announce_new_roots(client)
        params = {**params, **more} if more and self.stateless else params
        headers = {"mcp-name": encode_header_value(name)} if name and self._is_http and self.stateless else {}
        return await self.request(
            method, params, headers=headers, client=client, on_progress=on_progress, extensions=extensions
        )

    def offers(self, capability: str) -> bool:
        """Whether the upstream declared it."""
        return self.capabilities.get(capability) is not None

    @property
    def subscribes(self) -> bool:
        """Whether the upstream tells of changes of its resources."""
        return self._declares("resources", "subscribe")

    @property
    def listened_lists(self) -> Mapping[str, bool]:
        """The kinds of changed lists a change stream of it can tell of, as the stream's filter names them."""
        kinds = {kind: f"{kind}ListChanged" for kind in ("tools", "prompts", "resources")}
        return {member: True for kind, member in kinds.items() if self._declares(kind, "listChanged")}

    def _declares(self, capability: str, flag: str) -> bool:
        declared = self.capabilities.get(capability)
        return isinstance(declared, Mapping) and cast("Mapping[str, Any]", declared).get(flag) is True

    async def listen(self, notifications: Mapping[str, Any]) -> None:
        """Hold a change stream open until it ends (CHG-2). Raises like `call_tool`."""
        await self.request("subscriptions/listen", {"notifications": dict(notifications)})

    async def ping(self) -> None:
        """Hear anything at all; where the era knows no ping, its error. Raises like `call_tool`."""
        await self.request("ping", {})

    def _mirrored(self, name: str, arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, str]:
        """`Mcp-Param-*` headers, from the schema clients saw (REL-7)."""
        known = self._param_headers.get(name)
        if known is None or known[0] is not schema:  # it may have changed, and been approved since
            header_map = {} if find_invalid_x_mcp_header(schema) else x_mcp_header_map(schema)
            known = self._param_headers[name] = (schema, header_map)
        return mcp_param_headers(known[1], arguments)

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        headers: Mapping[str, str] | None = None,
        client: CallingClient | None = None,
        on_progress: OnProgress | None = None,
        options: CallOptions | None = None,
        extensions: Mapping[str, Any] = _NOTHING,
    ) -> dict[str, Any]:
        """Any request, stamped for this hop. Raises like `call_tool`."""
        request_id = next(self._ids)
        opts: CallOptions = {"request_id": request_id, **(options or {})}
        if on_progress is not None:
            opts["on_progress"] = self.notices.progress_meta.joined(request_id, on_progress)
        if client is not None:
            self._dispatcher.clients[request_id] = client
        if self._is_http and method != "initialize":
            opts["headers"] = self._headers(method, headers or {})
        try:
            stamped = self._stamped(params, client, extensions)
            return self._result(await self._dispatcher.send_raw_request(method, stamped, opts))
        except MCPError as error:
            self._raise_failure(error, request_id)
        finally:
            self.notices.progress_meta.forget(request_id)
            self._dispatcher.clients.pop(request_id, None)
            if isinstance(self._link, StdioTransport):
                self._link.forget(request_id)

    def _headers(self, method: str, more: Mapping[str, str]) -> dict[str, str]:
        headers = {"mcp-protocol-version": self.version, **more}
        if self.stateless:
            headers["mcp-method"] = method
        return headers

    def _result(self, raw: dict[str, Any]) -> dict[str, Any]:
        """Without `resultType` where that is no word of the protocol: it would start rounds, and run a call again."""
        if self.stateless or "resultType" not in raw:
            return raw
        return {name: value for name, value in raw.items() if name != "resultType"}

    def _raise_failure(self, error: MCPError, request_id: int) -> NoReturn:
        fault = self._link.marks.read(error.error.data)
        if fault is None and self._is_http and error.message.startswith(_EVENT_TOO_LARGE):
            # Told apart from a lost stream: asking again would bring the same, and nothing is wrong with the link.
            fault = Fault(FaultKind.MALFORMED, error.message.removeprefix("SSE stream failed: ")[:300])
        if fault is None and error.code == CONNECTION_CLOSED and error.message.startswith(_SILENT_ENDS):
            if isinstance(self._link, StdioTransport) and not self._link.was_written(request_id):
                fault = Fault(FaultKind.UNREACHABLE, self.last_words())
            elif self._is_http or self.closed.is_set() or self._link.exit_status is not None:
                fault = Fault(FaultKind.LOST, self.last_words() if not self._is_http else error.message)
        if fault is None and self._is_http and error.message.startswith(_FAILED_TO_PARSE):
            fault = Fault(FaultKind.MALFORMED, error.message[:300])
        if fault is not None:
            raise TransportFault(fault) from None
        raise UpstreamError(error.code, error.message, error.error.data) from None
