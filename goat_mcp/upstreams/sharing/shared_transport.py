"""A session's way to a process that the broker owns: the pair of streams that `stdio_transport` gives for its own.

What the process says comes as it said it. Between its frames the broker reports who shares it, and how it ended.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
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
from goat_mcp.upstreams.transports.stdio_transport import child_environment, program_of

_TRIES = 3
"""How often a broker is looked for that ends before it has answered."""


@dataclass(frozen=True)
class Share:
    """How the connections of one upstream are shared. `account` is whose a connection is, empty for the user's own.

    `asks`: whether the upstream is known to ask clients; `learn_asks` hears that it does. `leaves` is as in `Opening`.
    """

    account: Callable[[], str]
    asks: Callable[[], bool]
    learn_asks: Callable[[], None]
    start_broker: StartBroker
    leaves: tuple[int, ...] = ()

    @asynccontextmanager
    async def __call__(
        self, target: StdioLaunch, start_timeout_s: float
    ) -> AsyncGenerator[tuple[StdioTransport, Inbox, Outbox]]:
        """Use the process meanwhile. Raises `NotShared`, and `StartFailure` where it cannot be started at all."""
        if target.sandbox is not None:
            raise NotShared("its entry wants a sandbox")
        environment = child_environment(target.env)
        if "TERM" not in target.env:
            # It has no terminal of any window, and those of two windows may be different ones.
            environment.pop("TERM", None)
        cwd = target.cwd or str(Path.home())
        # Found here: the session's home directory may be another one than the broker's.
        program = os.path.join(cwd, program_of(target.command, environment))  # noqa: PTH118  # as it was written
        launch = SharedLaunch(program, target.args, sorted_environment(environment), cwd, self.account())
        opening = Opening(launch, f"goat-mcp/{secrets.token_hex(16)}", self.asks(), self.leaves)
        pipes = await self._opened(opening, start_timeout_s)
        try:
            yield pipes.link, pipes.inbox, Outbox(pipes, pipes.link)
        finally:
            pipes.abort()

    async def _opened(self, opening: Opening, start_timeout_s: float) -> SessionPipes:
        """The way to a process that runs. Raises `NotShared`, `StartFailure`."""
        for _ in range(_TRIES):
            connection = await broker_connection(self.start_broker)
            pipes = await session_pipes(connection, opening, self.learn_asks)
            pipes.write(encode(opening.wire()))
            await pipes.until_opened(start_timeout_s)
            if not pipes.has_lost_broker:
                return pipes
            # It ended just then, for nobody had needed it, and has done nothing for us: another one will.
            pipes.abort()
        raise StartFailure(ReasonCode.START_FAILED, "the broker of shared servers ended")


async def session_pipes(connection: socket.socket, opening: Opening, learn_asks: Callable[[], None]) -> SessionPipes:
    """The session's end of a connection to whoever has the process."""
    marks = FaultMarks()
    pipes = SessionPipes(StdioTransport(marks, FrameReader(marks, max_frame_bytes=MAX_LINE_BYTES)), opening, learn_asks)
    await asyncio.get_running_loop().create_connection(lambda: pipes, sock=connection)
    return pipes


class SessionPipes(ChildPipes):
    """The pipes of a process at the other end of a socket."""

    def __init__(self, link: StdioTransport, opening: Opening, learn_asks: Callable[[], None]) -> None:
        super().__init__(link)
        self.link = link
        self.opened = asyncio.Event()
        self.failure: StartFailure | NotShared | None = None
        self.has_lost_broker = False
        """Whether the connection was lost before the broker had said what has become of it."""
        self._opening = opening
        self._learn_asks = learn_asks

    async def until_opened(self, start_timeout_s: float) -> None:
        """Wait until the process can be used, or `has_lost_broker`. Raises `NotShared`, `StartFailure`."""
        try:
            with anyio.fail_after(start_timeout_s):
                await self.opened.wait()
            if self.failure is not None:
                raise self.failure
        except BaseException as problem:
            self.abort()
            if not isinstance(problem, TimeoutError):
                raise
            why = f"it was not started within {start_timeout_s:g} s"
            raise StartFailure(ReasonCode.START_TIMEOUT, why) from None

    def abort(self) -> None:
        """Close the connection at once."""
        if self._stdin is not None:
            self._stdin.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._stdin = cast("asyncio.WriteTransport", transport)
        self._stdout = cast("asyncio.ReadTransport", transport)

    def data_received(self, data: bytes) -> None:
        self._take(data)

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.opened.is_set():
            self.has_lost_broker = True
            self.opened.set()
        self._end_soon()

    def _take_one(self, message: JSONRPCMessage) -> float:
        if isinstance(message, JSONRPCNotification) and message.method == self._opening.control:
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
                    is_shared=True,
                    pid=facts["pid"],
                    broker_pid=facts["broker"],
                    sessions=tuple(facts["sessions"]),
                    folder=self._opening.launch.cwd,
                )
                link.pid = facts["pid"]
                link.frames.junk_lines, link.frames.oversized_frames = facts["junk"], facts["oversized"]
                link.limits.dropped = max(link.limits.dropped, facts["dropped"])
                self._take_stderr(facts)
            case _:
                pass  # of a later build

    def _take_stderr(self, facts: Mapping[str, Any]) -> None:
        self._link.stderr_tail[:] = facts["stderr"].encode("utf-8", "replace")[-STDERR_TAIL_BYTES:]
