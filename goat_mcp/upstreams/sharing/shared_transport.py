"""A session's way to a process that the broker owns: the pair of streams that `stdio_transport` gives for its own.

What the process says comes as it said it. Between its frames the broker reports who shares it, and how it ended.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import anyio
from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError, JSONRPCMessage, JSONRPCNotification

from goat_mcp.upstreams.config.entry import StdioLaunch
from goat_mcp.upstreams.faults import Fault, FaultKind, FaultMarks, NotShared, StartFailure
from goat_mcp.upstreams.sharing.broker import MAX_LINE_BYTES
from goat_mcp.upstreams.sharing.broker_start import StartBroker, broker_connection
from goat_mcp.upstreams.sharing.shared_launch import Opening, SharedLaunch, member, sorted_environment
from goat_mcp.upstreams.status import ReasonCode, SharingStatus
from goat_mcp.upstreams.transports.child_pipes import STDERR_TAIL_BYTES, ChildPipes, Outbox, StdioTransport
from goat_mcp.upstreams.transports.frame_inbox import Inbox
from goat_mcp.upstreams.transports.frames import FrameReader, encode
from goat_mcp.upstreams.transports.stdio_transport import child_environment


@dataclass(frozen=True)
class Share:
    """How the connections of one upstream are shared. `account` is whose a connection is, empty for the user's own.

    `asks`: whether the upstream is known to ask clients; `learn_asks` hears that it does.
    """

    account: Callable[[], str]
    asks: Callable[[], bool]
    learn_asks: Callable[[], None]
    start_broker: StartBroker

    @asynccontextmanager
    async def __call__(
        self, target: StdioLaunch, start_timeout_s: float
    ) -> AsyncGenerator[tuple[StdioTransport, Inbox, Outbox]]:
        """Use the process meanwhile. Raises `NotShared`, and `StartFailure` where it cannot be started at all."""
        if target.sandbox is not None:
            raise NotShared("its entry wants a sandbox")
        launch = SharedLaunch(
            target.command,
            target.args,
            sorted_environment(child_environment(target.env)),
            target.cwd or str(Path.home()),
            self.account(),
        )
        opening = Opening(launch, f"goat-mcp/{secrets.token_hex(16)}", self.asks())
        connection = await broker_connection(self.start_broker)
        marks = FaultMarks()
        link = StdioTransport(marks, FrameReader(marks, max_frame_bytes=MAX_LINE_BYTES))
        pipes = _SharedPipes(link, opening.control, self.learn_asks)
        transport, _ = await asyncio.get_running_loop().create_unix_connection(lambda: pipes, sock=connection)
        try:
            pipes.write(encode(opening.wire()))
            with anyio.move_on_after(start_timeout_s) as patience:
                await pipes.opened.wait()
            if pipes.failure is not None:
                raise pipes.failure
            if patience.cancelled_caught:
                raise StartFailure(ReasonCode.START_TIMEOUT, f"it was not started within {start_timeout_s:g} s")
            yield link, pipes.inbox, Outbox(pipes, link)
        finally:
            transport.abort()


class _SharedPipes(ChildPipes):
    """The pipes of a process at the other end of a socket."""

    def __init__(self, link: StdioTransport, control: str, learn_asks: Callable[[], None]) -> None:
        super().__init__(link)
        self.opened = asyncio.Event()
        self.failure: StartFailure | NotShared | None = None
        self._control = control
        self._learn_asks = learn_asks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._stdin = cast("asyncio.WriteTransport", transport)
        self._stdout = cast("asyncio.ReadTransport", transport)

    def data_received(self, data: bytes) -> None:
        self._take(data)

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.opened.is_set():
            self.failure = self.failure or StartFailure(ReasonCode.START_FAILED, "the broker of shared servers ended")
            self.opened.set()
        self._end_soon()

    def _take_one(self, message: JSONRPCMessage) -> float:
        if isinstance(message, JSONRPCNotification) and message.method == self._control:
            for kind in message.params or {}:
                self._take_report(kind, member(message.params, kind))
            return 0.0
        return super()._take_one(message)

    def _take_report(self, kind: str, facts: Mapping[str, Any]) -> None:
        """What the broker itself says."""
        link = self._link
        match kind:
            case "opened":
                link.pid = facts["pid"]
                self.opened.set()
            case "failed":
                self.failure = StartFailure(ReasonCode(facts["reason_code"]), facts["message"])
                self.opened.set()
            case "refused":
                self.failure = NotShared(facts["why"])
                self.opened.set()
            case "fault":
                data = link.marks.mark(Fault(FaultKind(facts["kind"]), facts["detail"]))
                error = ErrorData(code=INTERNAL_ERROR, message=facts["detail"], data=data)
                super()._take_one(JSONRPCError(jsonrpc="2.0", id=facts["id"], error=error))
            case "ended":
                link.exit_status, link.has_moved = facts["exit_status"], facts["moved"]
                # Whatever else was sent never reached the process.
                link.unanswered &= set(facts["written"])
                self._take_stderr(facts)
                if link.has_moved:
                    self._learn_asks()
                self.exited.set()
                self._end_soon()
            case "status":
                link.sharing = SharingStatus(
                    is_shared=True, pid=facts["pid"], broker_pid=facts["broker"], sessions=tuple(facts["sessions"])
                )
                link.pid = facts["pid"]
                link.frames.junk_lines, link.frames.oversized_frames = facts["junk"], facts["oversized"]
                link.limits.dropped = max(link.limits.dropped, facts["dropped"])
                self._take_stderr(facts)
            case _:
                pass  # of a later build

    def _take_stderr(self, facts: Mapping[str, Any]) -> None:
        self._link.stderr_tail[:] = facts["stderr"].encode("utf-8", "replace")[-STDERR_TAIL_BYTES:]
