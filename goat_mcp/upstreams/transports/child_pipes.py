"""The pipes of a stdio upstream: the pair of streams for the SDK's dispatcher, and a direct way for plain calls.

No thread and no task per message: bytes are parsed where the event loop delivers them and written at once.
A plain call goes into the pipe, and its answer from the pipe's callback to whoever waits: that costs a quarter of
what the SDK's dispatcher does (two streams, a span and three turns of the event loop more). Log messages go the direct
way too, so that the result of a call never overtakes them. Calls that report progress, lists, other notices and what
upstreams ask go through the dispatcher. Starting and stopping the process is in `stdio_transport`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol, cast

import anyio
import anyio.lowlevel
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from goat_mcp.core.calling_client import CallingClient
from goat_mcp.core.token_bucket import TokenBucket
from goat_mcp.files.documents.visible_text import make_visible
from goat_mcp.processes.asyncio_children import read_at_once
from goat_mcp.upstreams.envelope import cancelled_params
from goat_mcp.upstreams.faults import FaultMarks
from goat_mcp.upstreams.status import STDERR_ENDS, SharingStatus
from goat_mcp.upstreams.transports.frame_inbox import Inbox
from goat_mcp.upstreams.transports.frames import FrameReader, encode, encode_frame
from goat_mcp.upstreams.transports.notifications import NotificationLimits

Answer = JSONRPCResponse | JSONRPCError
LOG_MESSAGE = "notifications/message"


def _nobody(method: str, params: Mapping[str, Any] | None) -> None: ...


class Writer(Protocol):
    async def send_request(self, request_id: int, method: str, params: dict[str, Any]) -> None: ...

    def post(self, message: JSONRPCMessage) -> object: ...


@dataclass
class DirectDispatch:
    """The calls of one connection that wait for their answer. `on_log` takes its log messages, and must not block."""

    on_log: Callable[[str, Mapping[str, Any] | None], None] = _nobody
    _waiting: dict[int, asyncio.Future[Answer | None]] = field(
        default_factory=dict[int, "asyncio.Future[Answer | None]"]
    )
    _is_over: bool = False

    async def ask(
        self,
        writer: Writer,
        request_id: int,
        method: str,
        params: dict[str, Any],
        client: CallingClient | None = None,
    ) -> Answer | None:
        """The answer; None if the connection ended without one. Cancelled, it cancels the request: `client` is whose
        it is."""
        if self._is_over:
            return None
        # A request that was cancelled before it began is not sent at all.
        await anyio.lowlevel.checkpoint_if_cancelled()
        answer: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = answer
        try:
            await writer.send_request(request_id, method, params)
            return await answer
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return None
        except asyncio.CancelledError:
            cancelled = cancelled_params(request_id, client)
            writer.post(JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled", params=cancelled))
            raise
        finally:
            self._waiting.pop(request_id, None)

    def take(self, message: JSONRPCMessage) -> bool:
        """Hand an answer to its call. False for any other message, late and repeated answers included."""
        if not self._waiting or not isinstance(message, JSONRPCResponse | JSONRPCError):
            return False
        answered = message.id
        if isinstance(answered, str):
            # Some servers answer 7 with "7".
            answered = int(answered) if answered.isdecimal() and len(answered) < 16 else None
        call = self._waiting.pop(answered, None) if answered is not None else None
        if call is None:
            return False
        if not call.done():
            call.set_result(message)
        return True

    def take_log(self, message: JSONRPCMessage) -> bool:
        """Hand a log message on, before the answer that comes after it. False for any other message."""
        if not isinstance(message, JSONRPCNotification) or message.method != LOG_MESSAGE:
            return False
        self.on_log(message.method, message.params)
        return True

    def end(self) -> None:
        """No more answers will come."""
        self._is_over = True
        for call in self._waiting.values():
            if not call.done():
                call.set_result(None)


STDERR_TAIL_BYTES = 8 * 1024
_DRAIN_AFTER_EXIT_S = 0.2
_UNASKED_PER_S = 2_000.0
_UNASKED_AT_ONCE = 1_000.0
"""What is read of a process beyond its answers, so that a flood costs a fifth of a core and no more: a line of junk
that had to be parsed counts as 1, and so do 8 KiB of a line that is too long (16 MB a second); a question, which costs
us an answer, as 20. Lines dropped unread cost little (`FrameReader.effort`): 100,000 small ones pass in a second.
Notices that are read have limits of their own (`NotificationLimits`)."""
_DROPPED_BYTES = 8 * 1024
_HELD_S = 0.1
"""How long notices rest that are kept for later."""
_QUESTION = 20.0
_LAST_BYTES = 1024 * 1024
"""What is read without such pauses once the process has ended: more than a pipe and one read of it can hold. What it
has said by then may be an answer; whatever more comes is said by others that it left behind."""
_MAX_OPEN_QUESTIONS = 64
_TOO_MANY_QUESTIONS = -32000


@dataclass
class StdioTransport:
    """One running process: what it sent that we could not use, and how it ended."""

    marks: FaultMarks
    frames: FrameReader
    pid: int = 0
    exit_status: int | None = None
    stderr_tail: bytearray = field(default_factory=bytearray)
    unanswered: set[int | str] = field(default_factory=set[int | str])
    """Ids of requests whose bytes went into the pipe: these may have been executed."""
    questions: set[int | str] = field(default_factory=set[int | str])
    """Ids of the process's own requests whose answers are not in the pipe yet: it may not be reading them."""
    direct: DirectDispatch = field(default_factory=DirectDispatch)
    has_answered: bool = False
    """Whether it was ever ready: one that never was has nothing to finish before it ends."""
    sharing: SharingStatus | None = None
    has_moved: bool = False

    def was_written(self, request_id: int | str) -> bool:
        return request_id in self.unanswered

    def forget(self, request_id: int | str) -> None:
        self.unanswered.discard(request_id)

    def last_words(self) -> str:
        """How the process ended and the end of its stderr, for people."""
        if self.exit_status is None:
            how = "the connection closed"
        elif self.exit_status < 0:
            how = f"the process was killed by signal {-self.exit_status}"
        else:
            how = f"the process exited with status {self.exit_status}"
        return f"{how}{self.stderr_end()}"

    def stderr_end(self) -> str:
        """The end of its stderr, to be added to what went wrong."""
        tail = self.stderr_text()
        return f"{STDERR_ENDS}{make_visible(tail[-600:])}" if tail else ""

    @property
    def limits(self) -> NotificationLimits:
        return self.frames.limits

    def junk(self) -> tuple[int, int]:
        return self.frames.junk_lines, self.frames.oversized_frames

    def stderr_text(self) -> str:
        return self.stderr_tail.decode("utf-8", "replace").strip()


class Outbox:
    """The write stream: a message is in the pipe's buffer when `send` returns."""

    def __init__(self, process: ChildPipes, link: StdioTransport) -> None:
        self._process = process
        self._link = link

    async def send(self, item: SessionMessage, /) -> None:
        if not self._process.listens:
            raise anyio.ClosedResourceError
        message = item.message
        frame = encode_frame(message)
        if isinstance(message, JSONRPCRequest):
            self._link.unanswered.add(message.id)
        self._process.write(frame)
        await self._process.drain()
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
            self._link.questions.discard(message.id)

    async def send_request(self, request_id: int, method: str, params: dict[str, Any]) -> None:
        """As `send`, for a request of which no model was made."""
        if not self._process.listens:
            raise anyio.ClosedResourceError
        frame = encode({"jsonrpc": "2.0", "method": method, "id": request_id, "params": params})
        self._link.unanswered.add(request_id)
        self._process.write(frame)
        if self._process.is_full:
            await self._process.drain()

    def post(self, message: JSONRPCMessage) -> bool:
        """Write without waiting, if anybody still reads. Returns whether anybody does."""
        if self._process.listens:
            self._process.write(encode_frame(message))
        return self._process.listens

    @property
    def is_full(self) -> bool:
        """Whether the process has not read what was written by now."""
        return self._process.is_full

    async def drain(self) -> None:
        """Wait until the pipe takes more. Raises `anyio.BrokenResourceError`."""
        await self._process.drain()

    async def aclose(self) -> None:
        """The pipe is closed by whoever stops the process."""

    async def __aenter__(self) -> Outbox:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> bool | None:
        return None


class ChildPipes(asyncio.SubprocessProtocol):
    """The event loop's callbacks for one process."""

    def __init__(self, link: StdioTransport) -> None:
        self._link = link
        self._writable = asyncio.Event()
        self._writable.set()
        self.exited = asyncio.Event()
        self.listens = True
        """False as soon as nothing we write can be read any more: such a call provably never ran."""
        self.inbox = Inbox(self._pause, self._resume)
        self._unasked = TokenBucket(_UNASKED_PER_S, _UNASKED_AT_ONCE)
        self._waits = 0
        """For how many reasons the pipe is not read at the moment."""
        self._rest: asyncio.TimerHandle | None = None
        """The end of the pause that what was unasked has cost."""
        self._effort = 0.0
        self._held: asyncio.TimerHandle | None = None
        """When notices are read that were kept for later."""
        self._last_bytes = 0
        """How much is still read without pauses."""
        self._is_ending = False
        self._pipes: asyncio.SubprocessTransport | None = None
        self._stdin: asyncio.WriteTransport | None = None
        self._stdout: asyncio.ReadTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        pipes = self._pipes = cast("asyncio.SubprocessTransport", transport)
        self._stdin = cast("asyncio.WriteTransport", pipes.get_pipe_transport(0))
        self._stdout = cast("asyncio.ReadTransport", pipes.get_pipe_transport(1))
        read_at_once(self._stdout, self._take)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 1:
            self._take(data)
        else:
            tail = self._link.stderr_tail
            tail += data[-STDERR_TAIL_BYTES:]
            del tail[:-STDERR_TAIL_BYTES]

    def _take(self, data: bytes) -> None:
        frames = self._link.frames
        self._last_bytes = max(0, self._last_bytes - len(data))
        unasked = sum(map(self._take_one, frames.feed(data)))
        if frames.is_dropping:
            unasked += len(data) / _DROPPED_BYTES
        self._spend(unasked)

    def _take_held(self) -> None:
        """Notices that were kept for later."""
        self._held = None
        for message in self._link.frames.held():
            self._take_one(message)
        self._keep_held()

    def _keep_held(self) -> None:
        if self._held is None and self._link.frames.limits.holds_some:
            self._held = asyncio.get_running_loop().call_later(_HELD_S, self._take_held)

    def _take_one(self, message: JSONRPCMessage) -> float:
        if self._link.direct.take(message):
            return 0.0
        if not self._link.direct.take_log(message) and self._may_ask(message):
            self.inbox.put(SessionMessage(message))
        if isinstance(message, JSONRPCRequest):
            return _QUESTION
        return 0.0 if isinstance(message, JSONRPCNotification) else 1.0

    def _spend(self, unasked: float) -> None:
        """Rest for what was unasked, and for the lines that became no message."""
        effort = self._link.frames.effort
        unasked, self._effort = unasked + effort - self._effort, effort
        self._keep_held()
        if unasked and (wait_s := self._unasked.spend(unasked)) and not self._last_bytes:
            self._pause()
            self._rested()
            self._rest = asyncio.get_running_loop().call_later(wait_s, self._rested)

    def _rested(self) -> None:
        if self._rest is not None:
            self._rest.cancel()
            self._rest = None
            self._resume()

    def _may_ask(self, message: JSONRPCMessage) -> bool:
        """Whether the message is to be looked at. One that asks and asks and reads no answer is not listened to."""
        questions = self._link.questions
        if isinstance(message, JSONRPCRequest):
            if len(questions) < _MAX_OPEN_QUESTIONS:
                questions.add(message.id)
                return True
            if self._writable.is_set() and self.listens:
                error = ErrorData(code=_TOO_MANY_QUESTIONS, message="too many requests of yours are open")
                self.write(encode_frame(JSONRPCError(jsonrpc="2.0", id=message.id, error=error)))
            return False
        if isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            cancelled = (message.params or {}).get("requestId")
            if isinstance(cancelled, str | int):
                questions.discard(cancelled)
        return True

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd in (0, 1):
            # A server that closed either pipe can neither hear nor answer us any more.
            self._end_soon()

    def process_exited(self) -> None:
        self._link.exit_status = self._pipes.get_returncode() if self._pipes is not None else None
        self.exited.set()
        self._end_soon()

    def _end_soon(self) -> None:
        if self.listens:
            self.listens = False
            self._last_bytes = _LAST_BYTES
        self._writable.set()
        self._rested()
        # A child of the process may hold the pipe open: the end is the process's exit and a short drain.
        asyncio.get_running_loop().call_later(_DRAIN_AFTER_EXIT_S, self._end)

    def _end(self) -> None:
        # The last thing it said may come after much that is not taken yet.
        self._is_ending = bool(self._waits and self._last_bytes)
        if not self._is_ending:
            for message in self._link.frames.held(all_of_it=True):
                self._take_one(message)
            self.inbox.end()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def write(self, frame: bytes) -> None:
        assert self._stdin is not None
        self._stdin.write(frame)

    @property
    def is_full(self) -> bool:
        """Whether what is written has to wait for the process to read."""
        return not self._writable.is_set()

    async def drain(self) -> None:
        if not self._writable.is_set():
            await self._writable.wait()
            if not self.listens:
                raise anyio.BrokenResourceError

    def close_stdin(self) -> None:
        if self._stdin is not None:
            self._stdin.close()

    def _pause(self) -> None:
        self._waits += 1
        if self._waits == 1 and self._stdout is not None and not self._stdout.is_closing():
            self._stdout.pause_reading()

    def _resume(self) -> None:
        self._waits -= 1
        if self._waits:
            return
        if self._stdout is not None and not self._stdout.is_closing():
            self._stdout.resume_reading()
        if self._is_ending:
            self._end_soon()
