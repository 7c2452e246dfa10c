"""The pipes of a stdio upstream as the pair of streams the SDK's dispatcher takes.

No thread and no task per message: bytes are parsed where the event loop delivers them, and written where they
are sent. Starting and stopping the process is `stdio_link`'s.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, cast

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from goat_mcp.files.documents.visible_text import make_visible
from goat_mcp.processes.asyncio_children import read_at_once
from goat_mcp.upstreams.faults import FaultMarks
from goat_mcp.upstreams.token_bucket import TokenBucket
from goat_mcp.upstreams.transports.direct_dispatch import DirectDispatch
from goat_mcp.upstreams.transports.frames import FrameReader, LargeFrame, encode, encode_frame
from goat_mcp.upstreams.transports.full_collections import full_collections
from goat_mcp.upstreams.transports.notice_limits import NoticeLimits

STDERR_TAIL_BYTES = 8 * 1024
_DRAIN_AFTER_EXIT_S = 0.2
_MAX_QUEUED = 256
"""Messages parsed but not yet taken; past this the pipe is not read, so that a flood stays in the kernel."""
_UNASKED_PER_S = 2_000.0
_UNASKED_AT_ONCE = 1_000.0
"""What is read of a process beyond its answers, so that a flood costs a fifth of a core and no more: a line of junk
that had to be parsed counts as 1, and so do 8 KiB of a line that is too long (16 MB a second); a question, which costs
us an answer, as 20. Lines dropped unread cost little (`FrameReader.effort`): 100,000 small ones pass in a second.
Notices that are read have limits of their own (`NoticeLimits`)."""
_DROPPED_BYTES = 8 * 1024
_HELD_S = 0.1
"""How long notices rest that are kept for later."""
_QUESTION = 20.0
_OTHERS_WORK_S = 0.0003
_PARSE_REST_S = 0.002
"""How long a large answer rests where others took that long between two of its steps: a call of theirs takes several
turns of the event loop, and should not meet a step in each."""
_LAST_BYTES = 1024 * 1024
"""What is read without such pauses once the process has ended: more than a pipe and one read of it can hold. What it
has said by then may be an answer; whatever more comes is said by others that it left behind."""
_MAX_OPEN_QUESTIONS = 64
_TOO_MANY_QUESTIONS = -32000


@dataclass
class StdioLink:
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
        tail = self.stderr_text()
        return f"{how}; its stderr ends: {make_visible(tail[-600:])}" if tail else how

    @property
    def limits(self) -> NoticeLimits:
        return self.frames.limits

    def junk(self) -> tuple[int, int]:
        return self.frames.junk_lines, self.frames.oversized_frames

    def stderr_text(self) -> str:
        return self.stderr_tail.decode("utf-8", "replace").strip()


class Inbox:
    """The read stream: messages in arrival order, then the end."""

    def __init__(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        self._messages: deque[SessionMessage] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._ended = False
        self._paused = False
        self._pause, self._resume = pause, resume

    def put(self, message: SessionMessage) -> None:
        self._messages.append(message)
        if len(self._messages) > _MAX_QUEUED and not self._paused:
            self._paused = True
            self._pause()
        self._wake()

    def end(self) -> None:
        self._ended = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def receive(self) -> SessionMessage | Exception:
        while not self._messages:
            if self._ended:
                raise anyio.EndOfStream
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        message = self._messages.popleft()
        if self._paused and len(self._messages) < _MAX_QUEUED // 2:
            self._paused = False
            self._resume()
        return message

    def __aiter__(self) -> Inbox:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        self._messages.clear()
        self.end()

    async def __aenter__(self) -> Inbox:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> bool | None:
        await self.aclose()
        return None


class Outbox:
    """The write stream: a message is in the pipe's buffer when `send` returns."""

    def __init__(self, process: ChildPipes, link: StdioLink) -> None:
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
        await self._process.drain()

    def post(self, message: JSONRPCMessage) -> None:
        """Write without waiting, if anybody still reads."""
        if self._process.listens:
            self._process.write(encode_frame(message))

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

    def __init__(self, link: StdioLink) -> None:
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
        self._is_parsing = False
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
        unasked = self._take_all(frames.feed(data))
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

    def _take_all(self, messages: Iterator[JSONRPCMessage | LargeFrame]) -> float:
        """Up to the first that takes long, after which the rest is taken. What of it was unasked."""
        unasked = 0.0
        for message in messages:
            if isinstance(message, LargeFrame):
                self._pause()
                self._is_parsing = True
                full_collections().put_off()
                asyncio.get_running_loop().call_soon(self._parse_on, message, messages)
                break
            unasked += self._take_one(message)
        return unasked

    def _take_one(self, message: JSONRPCMessage) -> float:
        if self._link.direct.take(message):
            return 0.0
        if not self._link.direct.take_log(message) and self._may_ask(message):
            self.inbox.put(SessionMessage(message))
        if isinstance(message, JSONRPCRequest):
            return _QUESTION
        return 0.0 if isinstance(message, JSONRPCNotification) else 1.0

    def _parse_on(
        self, large: LargeFrame, rest: Iterator[JSONRPCMessage | LargeFrame], last_step_s: float = math.inf
    ) -> None:
        """One step. Whatever else is ready has its turn before the next; this upstream is not read meanwhile."""
        loop = asyncio.get_running_loop()
        if loop.time() - last_step_s > _OTHERS_WORK_S:
            loop.call_later(_PARSE_REST_S, self._parse_on, large, rest)
            return
        try:
            next(large.steps)
        except StopIteration as done:
            self._is_parsing = False
            full_collections().put_off()
            message: JSONRPCMessage | None = done.value
            unasked = self._take_one(message) if message is not None else 1.0
            self._spend(unasked + self._take_all(rest))
            self._resume()
        else:
            loop.call_soon(self._parse_on, large, rest, loop.time())

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
        # The last thing it said may be large, or come after much that is not taken yet.
        self._is_ending = self._is_parsing or bool(self._waits and self._last_bytes)
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
